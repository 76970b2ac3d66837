import { useDraft } from '../../components/draft.ts'
import type { Inspection } from '../../generated/inspection.ts'
import type { FileChange } from './patch.ts'

export type PolicyFile = Inspection['policies']['answer']['files'][number]
export type TryAnswer = Inspection['try']['answer']

/** What somebody wrote in the place of a file: `null`: it goes. */
interface Candidate {
  text: string | null
  /** SHA-256 of the file that it was made from; null: there was none. */
  replaces: string | null
}

export interface Candidates {
  /** With what is written, by their paths. */
  texts: Readonly<Record<string, string | null>>
  /** As a save names them. */
  saved: Readonly<Record<string, Candidate>>
  changes: readonly FileChange[]
  /** They were made from files that are others by now. */
  outdated: readonly string[]
  write(path: string, text: string | null): void
  forget(path?: string): void
  wasKept: boolean
}

/** Kept in this tab, also while the person signs in again to save them. */
export const useCandidates = (gateway: string, files: readonly PolicyFile[]): Candidates => {
  const { draft, setDraft, forget, wasKept } = useDraft(`policies of ${gateway}`)
  const all = draft as Readonly<Record<string, Candidate>>
  const present = new Map(files.map((file) => [file.path, file]))
  const rest = Object.entries(all).filter(([path, { text }]) => (present.get(path)?.text ?? null) !== text)
  return {
    texts: Object.fromEntries(rest.map(([path, { text }]) => [path, text])),
    saved: Object.fromEntries(rest),
    changes: rest.map(([path, { text }]) => ({ path, before: present.get(path)?.text, after: text })),
    outdated: rest
      .filter(([path, { replaces }]) => (present.get(path)?.sha256 ?? null) !== replaces)
      .map(([path]) => path),
    write: (path, text) =>
      setDraft((before) => ({
        ...before,
        [path]: {
          text,
          replaces: (before[path] as Candidate | undefined)?.replaces ?? present.get(path)?.sha256 ?? null,
        },
      })),
    forget: (path) => {
      if (path === undefined) return forget()
      setDraft((before) => Object.fromEntries(Object.entries(before).filter(([one]) => one !== path)))
    },
    wasKept,
  }
}

export const isTest = (path: string): boolean => path.endsWith('_test.rego')

/** Of what a save takes: one file of rules at most. */
export const cannotSaveTogether = (paths: readonly string[]): string | undefined =>
  paths.filter((path) => !isTest(path)).length > 1
    ? 'One file of rules is saved at a time, with its tests: several are no one step. Copy the patch instead.'
    : undefined
