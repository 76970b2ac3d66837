import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { styles } from '../../issuer/pages/styles.ts'

/** The console and the pages on which people sign in look alike. */

const colours = (text: string): Record<string, string> =>
  Object.fromEntries([...text.matchAll(/--([\w-]+):\s*(#[\da-f]{3,8})/g)].map(([, name, value]) => [name!, value!]))

test('the colours of the console are those of the sign-in pages, in both themes', async () => {
  const file = new URL('../../web/console/design/tokens.css', import.meta.url)
  const pairs = [
    ...(await readFile(file, 'utf8')).matchAll(/--([\w-]+):\s*light-dark\((#[\da-f]+),\s*(#[\da-f]+)\)/g),
  ].map(([, name, light, dark]) => ({ name: name!, light: light!, dark: dark! }))
  const [light, dark] = styles.split('@media (prefers-color-scheme:dark)').map(colours)
  const shared = pairs.filter(({ name }) => light && name in light)
  expect(shared.length).toBe(15)
  for (const { name, ...pair } of shared)
    expect({ name, ...pair }).toEqual({ name, light: light![name], dark: dark![name] })
})
