import { expect, test } from 'vitest'
import { containing } from '../../web/console/api/search-pattern.ts'
import type { Field } from '../../web/console/components/field.ts'
import { changedFields, changeOf, newOf } from '../../web/console/components/record-values.ts'

const record = {
  name: 'Shop',
  description: 'Sells',
  client: { redirectUris: ['https://a.example/'], logoUri: 'https://a.example/logo' },
}
const fields: Field[] = [
  { path: 'name', label: 'Name', isRequired: true },
  { path: 'description', label: 'Description' },
  { path: 'client.redirectUris', label: 'Redirect URIs', kind: 'list' },
  { path: 'client.logoUri', label: 'Logo' },
]

test('a change sends what differs, objects whole; what was emptied is null, or left out of an object', () => {
  const draft = {
    name: 'Shop',
    description: '',
    'client.redirectUris': ['https://b.example/', ' '],
    'client.logoUri': '',
  }
  const changed = changedFields(fields, record, draft)
  expect(changed.map(({ path }) => path)).toEqual(['description', 'client.redirectUris', 'client.logoUri'])
  expect(changeOf(changed, record, draft)).toEqual({
    description: null,
    client: { redirectUris: ['https://b.example/'] },
  })
})

test('something new has what was typed', () => {
  expect(newOf(fields, { name: 'Shop', description: '', 'client.redirectUris': ['https://a.example/'] })).toEqual({
    name: 'Shop',
    client: { redirectUris: ['https://a.example/'] },
  })
})

test('a search is for the text as it was typed', () => {
  expect(containing('50%_\\')).toBe('%50\\%\\_\\\\%')
})
