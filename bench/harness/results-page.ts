import { readFile, writeFile } from 'node:fs/promises'

/**
 * `docs/performance.md` holds a place for the results of each comparison, between two markers; the words around them
 * are written by people, what is between them only by `npm run bench -- --write`.
 */
const resultsPage = new URL('../../docs/performance.md', import.meta.url)

const begin = (name: string) => `<!-- results of ${name} -->`
const end = '<!-- end of results -->'

/** Puts the results of one comparison in their place. Throws when the page has none for it. */
export const writeResults = async (name: string, markdown: string): Promise<void> => {
  const page = await readFile(resultsPage, 'utf8')
  const from = page.indexOf(begin(name))
  const to = page.indexOf(end, from)
  if (from === -1 || to === -1) throw new Error(`docs/performance.md has no place for the results of "${name}"`)
  await writeFile(resultsPage, `${page.slice(0, from)}${begin(name)}\n${markdown}\n${page.slice(to)}`)
}
