import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Fixtures } from './openapi-fixtures.ts'

/** Requests made from an OpenAPI document alone, and answers held against it. */

// biome-ignore lint/suspicious/noExplicitAny: JSON of any shape
type Json = any

export interface Operation {
  operationId: string
  method: string
  path: string
  definition: Json
}

export const createRequests = (document: Json) => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'https://document.test/', ...document })

  const dereference = (value: Json): Json => {
    if (value?.$ref === undefined) return value
    const { $ref, ...beside } = value
    const target = $ref
      .slice(2)
      .split('/')
      .reduce((node: Json, name: string) => node[name], document)
    return { ...dereference(target), ...beside }
  }
  const validators = new Map<string, ValidateFunction>()
  const validatorOf = (schema: Json): ValidateFunction => {
    const text = JSON.stringify(schema).replaceAll('"#/', '"https://document.test/#/')
    const known = validators.get(text) ?? ajv.compile(JSON.parse(text))
    validators.set(text, known)
    return known
  }

  const operations: Operation[] = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
    Object.entries<Json>(item).map(([method, definition]) => ({
      operationId: definition.operationId,
      method: method.toUpperCase(),
      path,
      definition,
    })),
  )

  /** Of several forms the first. */
  const bodySchemaOf = ({ definition }: Operation): Json => {
    const schema = definition.requestBody && dereference(definition.requestBody.content['application/json'].schema)
    return schema?.anyOf?.[0] ?? schema
  }

  /** A value that fits: what the fixtures say of a member of this name, else something made from the schema. */
  const sample = (schemaOrReference: Json, name: string, operationId: string, { members }: Fixtures): Json => {
    const given = members[`${operationId} ${name}`] ?? members[name]
    if (given !== undefined && validatorOf(schemaOrReference)(given)) return given
    const schema = dereference(schemaOrReference)
    if (schema.const !== undefined) return schema.const
    if (schema.enum) return schema.enum[0]
    if (schema.anyOf) return sample(schema.anyOf[0], name, operationId, { members, ids: {} })
    switch (schema.type) {
      case 'boolean':
        return true
      case 'integer':
      case 'number':
        return Math.max(schema.minimum ?? 1, 1)
      case 'array':
        return schema.minItems ? [sample(schema.items, name, operationId, { members, ids: {} })] : []
      case 'object':
        return sampleObject(schema, operationId, { members, ids: {} }, Object.keys(schema.properties ?? {}))
      case 'null':
        return null
      default:
        return textOf(schema)
    }
  }
  const sampleObject = (schema: Json, operationId: string, fixtures: Fixtures, names: readonly string[]) =>
    Object.fromEntries(
      names
        .filter((name) => !impossible(dereference(schema.properties[name])))
        .map((name) => [name, sample(schema.properties[name], name, operationId, fixtures)]),
    )
  const impossible = (schema: Json) => JSON.stringify(schema.not) === '{}'

  /** A value that does not fit, of another type if possible. */
  const misfit = (schema: Json): Json =>
    [{ unexpected: true }, 'no such value!', -1.5, true, [[]], null].find((value) => !validatorOf(schema)(value))

  const pathOf = ({ path, operationId }: Operation, { ids }: Fixtures): string => {
    const address: string[] = []
    const template: string[] = []
    for (const segment of path.split('/')) {
      template.push(segment)
      const prefix = template.join('/')
      const id = segment.startsWith('{') ? (ids[`${operationId} ${prefix}`] ?? ids[prefix]) : segment
      if (id === undefined) throw new Error(`openapi-fixtures.ts has no id for ${prefix}.`)
      address.push(encodeURIComponent(id))
    }
    return address.join('/')
  }

  /** The parameters without which there is no answer. */
  const requiredQuery = ({ definition, operationId }: Operation, fixtures: Fixtures): string[] =>
    (definition.parameters ?? [])
      .map(dereference)
      .filter(({ in: where, required }: Json) => where === 'query' && required)
      .map(({ name, schema }: Json) => `${name}=${encodeURIComponent(sample(schema, name, operationId, fixtures))}`)

  /** Bodies that are wrong in exactly one way, each with what is wrong. */
  const wrongBodies = (operation: Operation, fixtures: Fixtures): [what: string, body: Json][] => {
    const schema = bodySchemaOf(operation)
    if (schema === undefined) return []
    const { properties = {}, required = [] } = schema
    const whole = sampleObject(schema, operation.operationId, fixtures, Object.keys(properties))
    const wrong: [string, Json][] = [['not an object', ['text']]]
    for (const name of required) {
      const { [name]: _, ...rest } = whole
      wrong.push([`without ${name}`, rest])
    }
    for (const [name, member] of Object.entries(properties)) {
      const value = misfit(member)
      if (value !== undefined) wrong.push([`with a wrong ${name}`, { ...whole, [name]: value }])
    }
    if (schema.additionalProperties === false) wrong.push(['with another member', { ...whole, unexpected: 1 }])
    return wrong
  }

  const wrongQueries = ({ definition }: Operation): string[] =>
    (definition.parameters ?? [])
      .map(dereference)
      .filter(({ in: where, schema }: Json) => where === 'query' && !validatorOf(schema)('no such value!'))
      .map(({ name }: Json) => `${name}=no such value!`)

  /** What an answer has that the document does not say; undefined when it is as documented. */
  const deviation = (
    { definition }: Operation,
    answer: { status: number; headers: Headers; body: unknown },
  ): string | undefined => {
    const documented = dereference(definition.responses[answer.status])
    if (documented === undefined) return `status ${answer.status} is not documented: ${JSON.stringify(answer.body)}`
    const [[type, content] = []] = Object.entries<Json>(documented.content ?? {})
    if (content === undefined) return answer.body === undefined ? undefined : 'a body although none is documented'
    if (answer.headers.get('content-type')?.split(';')[0] !== type) return `content type is not ${type}`
    const lines = ['application/x-ndjson', 'text/event-stream'].includes(type!)
      ? (answer.body as unknown[])
      : [answer.body]
    const validate = validatorOf(content.schema)
    for (const line of lines) {
      if (!validate(line)) return `${answer.status} ${JSON.stringify(line)}: ${ajv.errorsText(validate.errors)}`
    }
    const always = ['Logto-Core-Request-Id', 'Total-Number', 'Link']
    const missing = Object.keys(documented.headers ?? {}).filter(
      (name) => always.includes(name) && !answer.headers.has(name),
    )
    return missing.length === 0 ? undefined : `${answer.status} without ${missing.join()}`
  }

  return { operations, bodySchemaOf, sampleObject, pathOf, requiredQuery, wrongBodies, wrongQueries, deviation }
}

const textOf = ({ format, pattern, minLength = 1, maxLength = 1_000 }: Json): string => {
  if (format === 'uri') return 'https://example.test/x'
  const found = ['text', '#aabbcc', 'https://example.test', '1', 'default'].find(
    (text) => new RegExp(pattern ?? '').test(text) && text.length >= minLength && text.length <= maxLength,
  )
  if (found === undefined) throw new Error(`openapi-fixtures.ts has no text for ${pattern}.`)
  return found
}
