import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

/** A program that a page of the documentation shows: the block that begins with this line. */
export const documentedScript = async (page: string, firstLine: RegExp): Promise<string> => {
  const text = await readFile(fileURLToPath(new URL(`../../docs/${page}`, import.meta.url)), 'utf8')
  const blocks = [...text.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map(([, block]) => block!)
  const found = blocks.find((block) => firstLine.test(block))
  if (found === undefined) throw new Error(`docs/${page} has no program that begins with ${firstLine}`)
  return found
}
