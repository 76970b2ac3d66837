import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { experienceRoutes } from '../../../issuer/sign-in/experience/index.ts'
import { startExperience, type TestExperience } from '../../support/experience.ts'
import { createRequests } from '../api/openapi-requests.ts'

/**
 * `/api/experience.openapi.json`, as its users read it. That answers are as it says is part of every test of the
 * Experience API: `test/support/experience.ts` holds each one against it.
 */

let experience: TestExperience
// biome-ignore lint/suspicious/noExplicitAny: JSON of any shape
let document: any
beforeAll(async () => {
  experience = await startExperience()
  document = await (await fetch(`${experience.issuer.baseUrl}/api/experience.openapi.json`)).json()
})
afterAll(() => experience.close())

test('the document is valid OpenAPI 3.1, and has every reference that it makes', async () => {
  expect(document.openapi).toMatch(/^3\.1\./)
  expect(await new Validator().validate(document)).toEqual({ valid: true })
  for (const [, reference] of JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)) {
    const [root, section, kind, name] = reference!.split('/')
    expect([root, section], reference).toEqual(['#', 'components'])
    expect(document.components[kind!], reference).toHaveProperty([name!])
  }
})

test('the document has every call and nothing else, each under a name of its own', () => {
  const { operations } = createRequests(document)
  expect(operations.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(
    experienceRoutes.map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}') || '/'}`).toSorted(),
  )
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(experienceRoutes.length)
})

test('bodies that the document does not allow are refused, by every call', async () => {
  const { operations, wrongBodies } = createRequests(document)
  const pages = await experience.pages()
  const accepted: string[] = []
  let count = 0
  for (const operation of operations) {
    for (const [what, body] of wrongBodies(operation, { members: {}, ids: {} })) {
      const { status, body: answer } = await pages.call(operation.method, operation.path, body)
      count++
      if (status !== 400 || answer.code !== 'guard.invalid_input') {
        accepted.push(`${operation.operationId} ${what}: ${status} ${JSON.stringify(answer)}`)
      }
    }
  }
  expect(accepted).toEqual([])
  expect(count).toBeGreaterThan(40)
})
