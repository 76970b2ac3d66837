import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Rules in a folder of their own, for suites that share them among tests. */
export const writeRules = async (files: Record<string, string>) => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-rules-'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) }
}
