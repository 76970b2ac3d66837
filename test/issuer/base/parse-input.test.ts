import { expect, test } from 'vitest'
import { z } from 'zod'
import { parseInput } from '../../../issuer/base/parse-input.ts'
import { AppError } from '../../../platform/problem.ts'

test('input that does not fit names every issue and repeats no value', () => {
  const schema = z.object({ userId: z.string(), context: z.record(z.string(), z.unknown()).optional() })
  try {
    parseInput(schema, { userId: 5, context: 'hunter2' })
    expect.unreachable()
  } catch (error) {
    expect(error).toBeInstanceOf(AppError)
    expect(error).toMatchObject({ code: 'guard.invalid_input', status: 400 })
    expect(((error as AppError).data as { issues: { path: string }[] }).issues.map(({ path }) => path)).toEqual([
      'userId',
      'context',
    ])
    expect(JSON.stringify((error as AppError).data)).not.toContain('hunter2')
  }
})
