import { readFileSync } from 'node:fs'
import { catalogue, type EventType } from '../../events/catalogue.ts'
import { patternsOf } from '../../events/event-patterns.ts'
import { testPayload } from '../../events/examples.ts'
import { consoleRoleNames, consoleRoles } from '../../issuer/base/console-roles.ts'

/** What the console shows of the server beside its API: event types, roles of the console, types of claims scripts. */

/** Examples are the same each time. */
const made = { id: '0199c4f0-7a1e-7cc3-9d0b-2f6a51e8b7d4', correlationId: '0199c4f0-7a1d-7b52-8f3e-60c9d4a1e2b7' }
const createdAt = new Date('2026-01-15T09:30:00Z')

export const eventsFile = (): string => {
  const rows = (catalogue as readonly EventType[]).map((row) => {
    const { type, category, entity, occurs, example, named = false, planned = false } = row
    const { test: _, ...payload } = JSON.parse(testPayload(type, { ...made, createdAt }).toString())
    const fact = {
      type,
      category,
      entity,
      occurs,
      cause: example.cause,
      named,
      planned,
      patterns: patternsOf(type),
      payload,
    }
    return `  ${JSON.stringify(fact)},\n`
  })
  return `export const eventTypes = [\n${rows.join('')}]\n`
}

export const rolesFile = (): string => {
  const rows = consoleRoleNames.map((name) => `  ${name}: ${JSON.stringify(consoleRoles[name])},\n`)
  return `export const consoleRoles = {\n${rows.join('')}} as const\n`
}

const claimsTypes = new URL('../../issuer/claims/custom-claims.ts', import.meta.url)

/** The members of each interface: name, type, and what is said of it. Each stands in a line of its own. */
export const claimsFile = (): string => {
  const text = readFileSync(claimsTypes, 'utf8')
  const interfaces = [...text.matchAll(/interface (\w+)(?:<.*?>)?(?: extends (\w+))? \{\n(.*?)\n\}/gs)].map(
    ([, name, base, body = '']) => {
      const members = [
        ...body.matchAll(/^ {2}(?:\/\*\*((?:(?!\*\/).)*)\*\/\n {2})?(\w+)(\??)(\([^\n]*\))?: ([^\n]+)$/gms),
      ]
      const own = members.map(([, says = '', member, optional, parameters = '', type = '']) => ({
        ...{
          name: member,
          type: `${parameters && `${parameters} => `}${type.replace(/\{$/, 'object')}`,
          optional: optional === '?',
        },
        says: says.replaceAll(/\s*\n\s*\* ?/g, ' ').trim(),
      }))
      return [name, { base, members: own }] as const
    },
  )
  return `export const claimsTypes = ${JSON.stringify(Object.fromEntries(interfaces), null, 1)} as const\n`
}
