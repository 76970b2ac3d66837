import { stat } from 'node:fs/promises'

/** What tells whether files were changed, by their names. */
export type FileStates = ReadonlyMap<string, string>

export const statesOf = async (files: readonly string[]): Promise<FileStates> =>
  new Map(await Promise.all(files.map(async (file) => [file, await stateOf(file)] as const)))

export const textOf = (states: FileStates): string => JSON.stringify([...states])

/** Follows links. Unreadable is a state too: entering it is reported, leaving it loads again. */
const stateOf = async (file: string): Promise<string> => {
  try {
    const { ino, size, mtimeMs, ctimeMs } = await stat(file)
    return [ino, size, mtimeMs, ctimeMs].join()
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unreadable'
  }
}
