import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

let counter = 0
const someResource = async () => {
  const indicator = `https://api${++counter}.test`
  return api.expect(201, 'POST', '/resources', { name: 'Orders', indicator })
}
const someScope = async (resourceId: string, name: string) => {
  const scope = await api.expect(201, 'POST', `/resources/${resourceId}/scopes`, { name })
  await api.events()
  return scope
}

describe('API resources', () => {
  test('are registered, read, changed and deleted, without an event', async () => {
    const created = await api.expect(201, 'POST', '/resources', {
      name: 'Orders',
      indicator: 'https://orders.test/v1',
      accessTokenTtl: 60,
    })
    const { scopes, ...resource } = created
    expect(created).toEqual({
      tenantId: 'default',
      id: expect.stringMatching(/^[0-9a-z]{21}$/),
      name: 'Orders',
      indicator: 'https://orders.test/v1',
      isDefault: false,
      accessTokenTtl: 60,
      scopes: [],
    })
    expect(scopes).toEqual([])
    expect(await api.expect(200, 'GET', `/resources/${created.id}`)).toEqual(resource)

    const patch = { name: 'Sales', indicator: 'https://ignored.test', accessTokenTtl: 1 }
    const changed = { ...resource, name: 'Sales', accessTokenTtl: 1 }
    expect(await api.expect(200, 'PATCH', `/resources/${created.id}`, patch)).toEqual(changed)
    expect(await api.expect(200, 'GET', `/resources/${created.id}`)).toEqual(changed)

    expect(await api.call('DELETE', `/resources/${created.id}`)).toMatchObject({ status: 204, body: undefined })
    await api.expect(404, 'GET', `/resources/${created.id}`)
    expect(await api.events()).toEqual([])
  })

  test('get an hour of life for their tokens when nothing is said', async () => {
    expect((await someResource()).accessTokenTtl).toBe(3600)
  })

  test.each([
    'orders',
    '/orders',
    'https://orders.test/#top',
    'https://orders.test/with space',
    'https://bücher.test',
    'https://',
    'urn:logto:resource:organizations',
    '',
  ])('have an absolute URI without fragment as indicator, not %j', async (indicator) => {
    const answer = await api.call('POST', '/resources', { name: 'Orders', indicator })
    expect(answer).toMatchObject({ status: 400, body: { code: 'guard.invalid_input' } })
  })

  test.each(['urn:example:orders', 'https://orders.test/', 'https://ORDERS.test:8443/a?b=c', 'api://orders'])(
    'may be called %s, which is kept as written',
    async (indicator) => {
      expect((await api.expect(201, 'POST', '/resources', { name: 'Orders', indicator })).indicator).toBe(indicator)
    },
  )

  test('with one indicator are one, also when many register it at once', async () => {
    const input = { name: 'Orders', indicator: 'https://wanted.test' }
    const answers = await Promise.all(Array.from({ length: 12 }, () => api.call('POST', '/resources', input)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(11).fill(422)])
    expect(answers.find(({ status }) => status === 422)!.body.code).toBe('resource.resource_identifier_in_use')
  })

  test('are listed, with their scopes when asked', async () => {
    const { scopes: _, ...resource } = await someResource()
    const scope = await someScope(resource.id, 'read:orders')
    const row = async (query: string) =>
      (await api.expect(200, 'GET', `/resources${query}`)).find(({ id }: { id: string }) => id === resource.id)
    expect(await row('')).toEqual(resource)
    expect(await row('?includeScopes=true')).toEqual({ ...resource, scopes: [scope] })
    expect((await api.call('GET', '/resources?page=1&page_size=1')).headers.get('total-number')).toMatch(/^\d+$/)
  })

  test('one of them is the default', async () => {
    const [first, second] = [await someResource(), await someResource()]
    const setDefault = (id: string, isDefault: boolean) =>
      api.expect(200, 'PATCH', `/resources/${id}/is-default`, { isDefault })
    const defaults = async () =>
      (await api.expect(200, 'GET', '/resources'))
        .filter(({ isDefault }: { isDefault: boolean }) => isDefault)
        .map(({ id }: { id: string }) => id)

    expect(await setDefault(first.id, true)).toMatchObject({ id: first.id, isDefault: true })
    await setDefault(second.id, true)
    expect(await defaults()).toEqual([second.id])
    await setDefault(first.id, false)
    expect(await defaults()).toEqual([second.id])
    await setDefault(second.id, false)
    expect(await defaults()).toEqual([])
  })

  test('one of them is the default also when all are made so at once', async () => {
    const resources = await Promise.all(Array.from({ length: 8 }, someResource))
    await Promise.all(
      resources.map(({ id }) => api.expect(200, 'PATCH', `/resources/${id}/is-default`, { isDefault: true })),
    )
    const all = await api.expect(200, 'GET', '/resources')
    expect(all.filter(({ isDefault }: { isDefault: boolean }) => isDefault)).toHaveLength(1)
  })

  test('that do not exist are 404', async () => {
    for (const [method, path, body, code] of [
      ['GET', '/resources/none', undefined, 'entity.not_exists_with_id'],
      ['PATCH', '/resources/none', { name: 'x' }, 'entity.not_exists_with_id'],
      ['PATCH', '/resources/none/is-default', { isDefault: true }, 'entity.not_exists_with_id'],
      ['DELETE', '/resources/none', undefined, 'entity.not_found'],
      ['GET', '/resources/none/scopes', undefined, 'entity.not_exists_with_id'],
      ['POST', '/resources/none/scopes', { name: 'x' }, 'entity.not_exists_with_id'],
    ] as const) {
      expect(await api.call(method, path, body)).toMatchObject({ status: 404, body: { code } })
    }
  })
})

describe('permissions', () => {
  test('are defined, read, changed and deleted, each with its event', async () => {
    const resource = await someResource()
    const path = `/resources/${resource.id}/scopes`
    await api.events()

    const scope = await api.expect(201, 'POST', path, { name: 'read:orders', description: 'See orders' })
    expect(scope).toEqual({
      tenantId: 'default',
      id: expect.stringMatching(/^[0-9a-z]{21}$/),
      resourceId: resource.id,
      name: 'read:orders',
      description: 'See orders',
      createdAt: expect.any(Number),
    })
    expect(await api.expect(200, 'GET', path)).toEqual([scope])
    expect(await api.expect(200, 'PATCH', `${path}/${scope.id}`, { description: 'See orders' })).toEqual(scope)
    const changed = await api.expect(200, 'PATCH', `${path}/${scope.id}`, { name: 'orders.read', description: null })
    expect(changed).toEqual({ ...scope, name: 'orders.read', description: null })
    expect(await api.call('DELETE', `${path}/${scope.id}`)).toMatchObject({ status: 204, body: undefined })
    expect(await api.expect(200, 'GET', path)).toEqual([])

    const params = { resourceId: resource.id, scopeId: scope.id }
    const matchedRoute = '/resources/:resourceId/scopes'
    expect(await api.events()).toEqual([
      expect.objectContaining({
        event: 'Scope.Created',
        version: 1,
        data: scope,
        path,
        matchedRoute,
        params: { resourceId: resource.id },
        method: 'POST',
        status: 201,
      }),
      expect.objectContaining({
        event: 'Scope.Data.Updated',
        version: 2,
        data: changed,
        matchedRoute: `${matchedRoute}/:scopeId`,
        params,
        method: 'PATCH',
        status: 200,
      }),
      expect.objectContaining({
        event: 'Scope.Deleted',
        version: 3,
        data: null,
        params,
        method: 'DELETE',
        status: 204,
      }),
    ])
  })

  test.each([
    ['read orders', 'scope.name_with_space'],
    ['read\torders', 'scope.name_with_space'],
    ['', 'guard.invalid_input'],
    ['lire:"commandes"', 'guard.invalid_input'],
    ['größe', 'guard.invalid_input'],
    ['a'.repeat(257), 'guard.invalid_input'],
  ])('have a scope token as name, not %j', async (name, code) => {
    const resource = await someResource()
    const path = `/resources/${resource.id}/scopes`
    const scope = await someScope(resource.id, 'read')
    expect(await api.call('POST', path, { name })).toMatchObject({ status: 400, body: { code } })
    expect(await api.call('PATCH', `${path}/${scope.id}`, { name })).toMatchObject({ status: 400, body: { code } })
    expect(await api.events()).toEqual([])
  })

  test('have a name of their own on their resource', async () => {
    const [orders, other] = [await someResource(), await someResource()]
    const path = `/resources/${orders.id}/scopes`
    await someScope(orders.id, 'read')
    const write = await someScope(orders.id, 'write')
    await someScope(other.id, 'read')
    const code = 'scope.name_exists'
    expect(await api.call('POST', path, { name: 'read' })).toMatchObject({ status: 422, body: { code } })
    expect(await api.call('PATCH', `${path}/${write.id}`, { name: 'read' })).toMatchObject({
      status: 422,
      body: { code },
    })
    expect(await api.call('PATCH', `${path}/${write.id}`, {})).toMatchObject({
      status: 422,
      body: { code: 'entity.invalid_input' },
    })
    expect(await api.events()).toEqual([])

    const answers = await Promise.all(Array.from({ length: 12 }, () => api.call('POST', path, { name: 'wanted' })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(11).fill(422)])
    expect(await api.events()).toHaveLength(1)
  })

  test('belong to their resource: another one does not know them', async () => {
    const [orders, other] = [await someResource(), await someResource()]
    const scope = await someScope(orders.id, 'read')
    const path = `/resources/${other.id}/scopes/${scope.id}`
    expect(await api.call('PATCH', path, { name: 'x' })).toMatchObject({
      status: 404,
      body: { code: 'entity.not_exists_with_id' },
    })
    expect(await api.call('DELETE', path)).toMatchObject({ status: 404, body: { code: 'entity.not_found' } })
    expect(await api.expect(200, 'GET', `/resources/${orders.id}/scopes`)).toEqual([scope])
  })

  test('are paged and searched', async () => {
    const resource = await someResource()
    for (const name of ['read:a', 'read:b', 'write:a']) await someScope(resource.id, name)
    const path = `/resources/${resource.id}/scopes`
    const names = (body: { name: string }[]) => body.map(({ name }) => name)
    expect(names(await api.expect(200, 'GET', `${path}?search=read%25`))).toEqual(['read:a', 'read:b'])
    const page = await api.call('GET', `${path}?page=2&page_size=2`)
    expect(names(page.body)).toEqual(['write:a'])
    expect(page.headers.get('total-number')).toBe('3')
  })

  test('go with their resource, and roles lose them, silently', async () => {
    const resource = await someResource()
    const scope = await someScope(resource.id, 'read')
    const input = { name: `Reader ${resource.id}`, description: 'x', scopeIds: [scope.id] }
    const role = await api.expect(200, 'POST', '/roles', input)
    await api.events()
    await api.expect(204, 'DELETE', `/resources/${resource.id}`)
    expect(await api.expect(200, 'GET', `/roles/${role.id}/scopes`)).toEqual([])
    expect(await api.events()).toEqual([])
  })
})
