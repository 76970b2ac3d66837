import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { consoleApi } from './console-api.ts'

/** `npm run generate`: writes what the console knows of the Management API. */
const folder = new URL('../../web/console/generated/', import.meta.url)
for (const [name, text] of Object.entries(consoleApi())) {
  const file = new URL(name, folder)
  await writeFile(file, text)
  process.stdout.write(`${fileURLToPath(file)}: written\n`)
}
