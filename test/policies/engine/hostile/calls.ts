import type { HostileCall } from './call.ts'
import { collectionCalls } from './collections.ts'
import { documentCalls } from './documents.ts'
import { keyCalls } from './keys.ts'
import { regexCalls } from './regexes.ts'
import { textCalls } from './texts.ts'

export type { HostileCall } from './call.ts'

export const hostileCalls: readonly HostileCall[] = [
  ...textCalls,
  ...collectionCalls,
  ...regexCalls,
  ...documentCalls,
  ...keyCalls,
]
