import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { consoleApi } from '../../bin/build/console-api.ts'
import { operations } from '../../web/console/generated/operations.ts'

test('what the console knows of the Management API is what the server has: npm run generate', async () => {
  for (const [name, text] of Object.entries(consoleApi())) {
    const file = new URL(`../../web/console/generated/${name}`, import.meta.url)
    expect((await readFile(file, 'utf8')) === text, name).toBe(true)
  }
})

test('an operation says who may call it', () => {
  expect(operations.listUsers).toEqual({
    ...{ id: 'listUsers', method: 'GET', path: '/users', scopes: ['users', 'read', 'all'] },
    ...{ secret: false, paged: 'always', canDryRun: false },
  })
  expect(operations.listApplicationSecrets).toMatchObject({ scopes: ['applications', 'all'], secret: true })
})
