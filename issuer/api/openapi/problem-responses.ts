import { statusText } from '../../../platform/problem.ts'
import { type ProblemCode, problems } from '../../base/errors/problems.ts'
import { referencesTo } from './headers.ts'
import type { SchemaObject } from './json-schema.ts'

export const problemSchema: SchemaObject = {
  type: 'object',
  required: ['code', 'message'],
  properties: {
    code: { type: 'string', description: 'Stable: act on this.' },
    message: { type: 'string', description: 'Belongs to the code.' },
    details: { type: 'string', description: 'What was wrong with this request.' },
    data: { description: 'What a program can use to put it right: `issues`, `id`, `ids`, `scopes`, …' },
  },
}

const commonHeadersOf: Readonly<Record<number, readonly string[]>> = {
  409: ['Retry-After'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

/** Where an operation answers with another status than the problem table. */
export type ProblemStatuses = Readonly<Partial<Record<ProblemCode, number>>>

/**
 * The answers that are no success. Groups of problems that are `shared` by many operations are components; `headersOf`
 * are those of an API's own, by status.
 */
export const createProblemResponses = (
  shared: readonly ProblemCode[],
  headersOf: Readonly<Record<number, readonly string[]>> = {},
) => {
  const responseOf = (status: number, codes: readonly ProblemCode[]): SchemaObject => ({
    description: codes.map((code) => `\`${code}\`: ${problems[code][1]}`).join('\n\n'),
    headers: referencesTo('headers', [
      'Logto-Core-Request-Id',
      ...(headersOf[status] ?? commonHeadersOf[status] ?? []),
    ]),
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Problem', properties: { code: { enum: codes } } },
      },
    },
  })
  const components = new Map(
    [...Map.groupBy(shared, (code) => problems[code][0])].map(([status, codes]) => {
      const name = statusText(status).replaceAll(/\W/g, '')
      return [name, { codes, response: responseOf(status, codes) }]
    }),
  )
  const names = new Map([...components].map(([name, { codes }]) => [codes.join(), name]))

  return {
    /** By status. */
    responsesOf(codes: readonly ProblemCode[], statuses: ProblemStatuses = {}): Record<string, SchemaObject> {
      const byStatus = Map.groupBy(new Set(codes), (code) => statuses[code] ?? problems[code][0])
      return Object.fromEntries(
        [...byStatus]
          .sort(([one], [other]) => one - other)
          .map(([status, group]) => {
            const name = names.get(group.join())
            return [
              String(status),
              name === undefined ? responseOf(status, group) : { $ref: `#/components/responses/${name}` },
            ]
          }),
      )
    },
    components: (): Record<string, SchemaObject> =>
      Object.fromEntries([...components].map(([name, { response }]) => [name, response])),
  }
}
