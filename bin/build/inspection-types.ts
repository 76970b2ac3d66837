import { z } from 'zod'
import { type InspectionEndpoint, inspectionEndpoints } from '../../gateway/inspection/api.ts'
import { streamEvents } from '../../gateway/inspection/decision-answers.ts'
import { typeOf } from './schema-types.ts'

/** What the console knows of the inspection API of gateways: a table of endpoints, and the types of each. */
export const inspectionFile = (): string => {
  const named = new Map<string, string>()
  const all = Object.entries(inspectionEndpoints as Record<string, InspectionEndpoint>)
  const rows = all.map(([name, { method, path, scope }]) => `  ${name}: ${JSON.stringify({ method, path, scope })},\n`)
  const types = all.map(([name, { path, query, body, answer }]) =>
    [
      `  ${name}: {`,
      `    params: { ${[...path.matchAll(/:(\w+)/g)].map(([, one]) => `"${one}": string`).join('; ')} }`,
      `    query: ${typeOfSchema(query, 'input', named)}`,
      `    body: ${body ? typeOfSchema(body, 'input', named) : 'undefined'}`,
      `    answer: ${typeOfSchema(answer, 'output', named)}`,
      '  }\n',
    ].join('\n'),
  )
  const events = Object.entries(streamEvents).map(
    ([name, schema]) => `  ${name}: ${typeOfSchema(schema, 'output', named)}\n`,
  )
  return [
    `export const inspection = {\n${rows.join('')}} as const\n`,
    `export interface Inspection {\n${types.join('')}}\n`,
    `export interface InspectionEvents {\n${events.join('')}}\n`,
    ...[...named].map(([type, name]) => `export type $${name} = ${type.replaceAll('$itself', `$${name}`)}\n`),
  ].join('\n')
}

/** @param named gets the types that hold themselves. */
const typeOfSchema = (schema: z.ZodType, io: 'input' | 'output', named: Map<string, string>): string => {
  const json = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  let text = typeOf(json)
  for (const [name, definition] of Object.entries(json.$defs ?? {})) {
    const type = typeOf(definition).replaceAll(`$${name}`, '$itself')
    if (!named.has(type)) named.set(type, `Nested${named.size + 1}`)
    text = text.replaceAll(`$${name}`, `$${named.get(type)}`)
  }
  return text
}
