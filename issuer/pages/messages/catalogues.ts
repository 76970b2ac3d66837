import { de } from './de.ts'
import { en } from './en.ts'
import { es } from './es.ts'
import { fr } from './fr.ts'
import { ja } from './ja.ts'
import type { Messages } from './translation.ts'

export const catalogues = { en, de, fr, es, ja } satisfies Record<string, Messages>

/** A language of the pages (BCP 47). */
export type Locale = keyof typeof catalogues
