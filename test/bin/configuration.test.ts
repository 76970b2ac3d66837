import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { settings } from '../../bin/cli/settings.ts'
import { issuerSettings } from '../../issuer/config.ts'
import { relaySettings } from '../../relay/config.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** Which commands read a setting, as their schemas say. `start` is issuer, relay and gateway in one. */
const readers = new Map<string, Set<string>>()
const add = (commands: readonly string[], names: readonly string[]) => {
  for (const name of names) {
    const known = readers.get(name) ?? new Set()
    for (const command of commands) known.add(command)
    readers.set(name, known)
  }
}
for (const [command, schema] of Object.entries(settings)) add([command], Object.keys(schema.shape))
add(['start', 'issuer'], Object.keys(issuerSettings.shape))
add(['start', 'relay'], Object.keys(relaySettings.shape))

const rows = [...read('docs/configuration.md').matchAll(/^\| `([A-Z_]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)].map(
  ([, name, commands]) => ({ name: name!, commands: commands! }),
)

test('docs/configuration.md has every setting once, and no other', () => {
  expect(rows.map(({ name }) => name).toSorted()).toEqual([...readers.keys()].toSorted())
})

test('docs/configuration.md says which commands read it', () => {
  const everyone = Object.keys(settings)
  const documented = Object.fromEntries(
    rows.map(({ name, commands }) => {
      const excepted = /^all but (\w+)$/.exec(commands)?.[1]
      const list = excepted ? everyone.filter((command) => command !== excepted) : commands.split(', ')
      return [name, list.toSorted()]
    }),
  )
  expect(documented).toEqual(
    Object.fromEntries([...readers].map(([name, commands]) => [name, [...commands].toSorted()])),
  )
})

test('.env.example has every setting once, and no other', () => {
  const names = [...read('.env.example').matchAll(/^#?([A-Z_]+)=/gm)].map(([, name]) => name!)
  expect(names.toSorted()).toEqual([...readers.keys()].toSorted())
})
