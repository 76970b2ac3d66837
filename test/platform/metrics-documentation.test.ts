import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

/** The documentation names every metric, and none that there is not. */

const root = fileURLToPath(new URL('../../', import.meta.url))

const namesIn = async (files: string, pattern: RegExp): Promise<string[]> => {
  const names = new Set<string>()
  for await (const file of glob(files, { cwd: root })) {
    for (const [, name] of readFileSync(root + file, 'utf8').matchAll(pattern)) names.add(name!)
  }
  return [...names].sort()
}

test('metrics are documented, all of them', async () => {
  const made = await namesIn(
    '{platform,policies,gateway,events,issuer,relay,bin}/**/*.ts',
    /(?:counter|gauge|histogram)\(\s*'(surrogate_\w+)'/g,
  )
  expect(made.length).toBeGreaterThan(40)
  expect(await namesIn('docs/*.md', /`(?:\w+\()?(surrogate_\w+)/g)).toEqual(made)
})
