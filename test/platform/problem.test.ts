import { expect, test } from 'vitest'
import { createLogger } from '../../platform/logger.ts'
import { problemJson, problemsOf } from '../../platform/problem.ts'
import { depthOf, storableText } from '../../platform/validate.ts'

test('a problem document carries its code, its status and the request id, and no cause', () => {
  const problem = problemsOf({ invalid_token: [401, 'The access token is not valid.'] })
  const error = problem('invalid_token', { detail: 'The token has expired.', cause: new Error('inner') })
  expect(problemJson(error, 'request-1')).toEqual({
    type: 'urn:surrogate:problem:invalid_token',
    title: 'The access token is not valid.',
    status: 401,
    code: 'invalid_token',
    detail: 'The token has expired.',
    instance: 'request-1',
  })
})

test('text that Postgres cannot hold is refused', () => {
  expect(storableText.safeParse('a\u0000b').success).toBe(false)
  expect(storableText.safeParse('\ud800').success).toBe(false)
  expect(storableText.safeParse('grüße 🎟').success).toBe(true)
})

test('depth counts nested objects and arrays', () => {
  expect([depthOf(1), depthOf({}), depthOf({ a: [1] }), depthOf([[[]]])]).toEqual([0, 1, 2, 3])
})

test('credentials that reach the logger all the same are redacted', () => {
  const lines: string[] = []
  const logger = createLogger({ name: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } })
  logger.info(
    { headers: { authorization: 'Bearer abc' }, body: { client_secret: 's3cr3t' }, subjectToken: 'sub_x' },
    'request',
  )
  expect(lines.join()).toContain('[redacted]')
  expect(lines.join()).not.toMatch(/Bearer abc|s3cr3t|sub_x/)
})
