import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'
import { recordsOf } from './records.ts'

let api: ManagementTest
const make = recordsOf(() => api)
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

const refusal = (status: number, code: string) => ({ status, body: { code } })

describe('creating', () => {
  test('an organization needs a name; everything else has a default', async () => {
    const organization = await api.expect(201, 'POST', '/organizations', { name: 'Acme' })
    expect(organization).toEqual({
      tenantId: 'default',
      id: expect.stringMatching(/^[0-9a-z]{12}$/),
      name: 'Acme',
      description: null,
      customData: {},
      isMfaRequired: false,
      color: {},
      branding: {},
      customCss: null,
      createdAt: expect.any(Number),
    })
    expect(await api.expect(200, 'GET', `/organizations/${organization.id}`)).toEqual(organization)
    expect(await api.events()).toEqual([
      expect.objectContaining({
        event: 'Organization.Created',
        version: 1,
        organizationId: organization.id,
        data: organization,
        path: '/organizations',
        matchedRoute: '/organizations',
        params: {},
        method: 'POST',
        status: 201,
      }),
    ])
  })

  test('an organization keeps all that its record has; names may repeat', async () => {
    const input = {
      name: 'Acme',
      description: 'Anvils',
      customData: { plan: 'gold' },
      isMfaRequired: true,
      color: { primaryColor: '#5d34f2', isDarkModeEnabled: true, darkPrimaryColor: '#fff' },
      branding: { logoUrl: 'https://acme.test/logo.png', darkFavicon: 'https://acme.test/dark.ico' },
      customCss: 'body { color: red }',
    }
    const organization = await api.expect(201, 'POST', '/organizations', input)
    expect(organization).toEqual({ ...organization, ...input })
    await api.events()
  })

  test.each([
    [{ name: '' }, 400, 'guard.invalid_input'],
    [{ name: 'a'.repeat(129) }, 400, 'guard.invalid_input'],
    [{ description: 'a'.repeat(257) }, 400, 'guard.invalid_input'],
    [{ customData: [] }, 400, 'guard.invalid_input'],
    [{ isMfaRequired: 'yes' }, 400, 'guard.invalid_input'],
    [{ color: { primaryColor: 'red' } }, 400, 'guard.invalid_input'],
    [{ branding: { logoUrl: 'javascript:alert(1)' } }, 400, 'guard.invalid_input'],
    [{ customCss: 'a'.repeat(65_537) }, 400, 'guard.invalid_input'],
    [{ customData: { text: 'a'.repeat(262_144) } }, 422, 'entity.value_too_long'],
  ])('with %o is refused and leaves nothing behind', async (part, status, code) => {
    expect(await api.call('POST', '/organizations', { name: 'Refused', ...part })).toMatchObject(refusal(status, code))
    expect(await api.expect(200, 'GET', '/organizations?q=Refused')).toEqual([])
    expect(await api.events()).toEqual([])
  })
})

describe('changing', () => {
  test('replaces objects; what changes nothing is no event', async () => {
    const organization = await make.organization({ customData: { a: 1, b: 2 }, description: 'Old' })
    await api.events()
    const patch = { description: null, customData: { a: 1 }, isMfaRequired: true }
    const changed = await api.expect(200, 'PATCH', `/organizations/${organization.id}`, patch)
    expect(changed).toEqual({ ...organization, ...patch })
    expect(await api.expect(200, 'PATCH', `/organizations/${organization.id}`, patch)).toEqual(changed)
    expect(await api.events()).toEqual([
      expect.objectContaining({
        event: 'Organization.Data.Updated',
        version: 2,
        organizationId: organization.id,
        data: changed,
        matchedRoute: '/organizations/:id',
        params: { id: organization.id },
      }),
    ])
  })

  test('is refused for an unknown organization and an empty body', async () => {
    const { id } = await make.organization()
    await api.events()
    const update = (path: string, body: object) => api.call('PATCH', `/organizations/${path}`, body)
    expect(await update('none', { name: 'x' })).toMatchObject(refusal(404, 'entity.not_exists_with_id'))
    expect(await update(id, {})).toMatchObject(refusal(422, 'entity.invalid_input'))
    expect(await update(id, { name: null })).toMatchObject(refusal(400, 'guard.invalid_input'))
    expect(await api.events()).toEqual([])
  })
})

describe('deleting', () => {
  test('leaves its users and applications, and is its own event only', async () => {
    const organization = await make.organization()
    const [user, application] = [await make.user(), await make.application()]
    await api.expect(201, 'POST', `/organizations/${organization.id}/users`, { userIds: [user.id] })
    await api.expect(201, 'POST', `/organizations/${organization.id}/applications`, {
      applicationIds: [application.id],
    })
    await api.events()
    await api.expect(204, 'DELETE', `/organizations/${organization.id}`)
    expect(await api.events()).toEqual([
      expect.objectContaining({
        event: 'Organization.Deleted',
        version: 4,
        organizationId: organization.id,
        data: null,
        params: { id: organization.id },
      }),
    ])
    expect(await api.expect(200, 'GET', `/users/${user.id}/organizations`)).toEqual([])
    expect(await api.expect(200, 'GET', `/applications/${application.id}/organizations`)).toEqual([])
    const gone = await api.call('DELETE', `/organizations/${organization.id}`)
    expect(gone).toMatchObject(refusal(404, 'entity.not_found'))
    expect(await api.call('GET', `/organizations/${organization.id}`)).toMatchObject(
      refusal(404, 'entity.not_exists_with_id'),
    )
  })
})

describe('lists', () => {
  test('are paged, newest first, and searched by id, name and description, literally', async () => {
    const percent = await make.organization({ name: 'Hundred 100% Limited' })
    const described = await make.organization({ name: 'Other', description: 'Formerly the 1000 Limited' })
    const found = async (q: string) =>
      (await api.expect(200, 'GET', `/organizations?q=${encodeURIComponent(q)}`)).map(({ id }: { id: string }) => id)
    expect(await found('100%')).toEqual([percent.id])
    expect(await found('LIMITED')).toEqual([described.id, percent.id])
    expect(await found(described.id)).toEqual([described.id])
    expect(await found('1_0%')).toEqual([])
    expect(await found('\\')).toEqual([])
    const page = await api.call('GET', '/organizations?q=limited&page=2&page_size=1')
    expect(page.body.map(({ id }: { id: string }) => id)).toEqual([percent.id])
    expect(page.headers.get('total-number')).toBe('2')
    expect((await found('')).length).toBeGreaterThan(2)
    expect(await api.call('GET', '/organizations?q=a&q=b')).toMatchObject(refusal(400, 'guard.invalid_input'))
  })

  test('show how many users are members, and three of them, when asked to', async () => {
    const organization = await make.organization({ name: 'Featured' })
    const users = []
    for (let count = 4; count > 0; count--) users.push(await make.user())
    for (const { id } of users) {
      await api.expect(201, 'POST', `/organizations/${organization.id}/users`, { userIds: [id] })
    }
    const [plain] = await api.expect(200, 'GET', '/organizations?q=Featured')
    expect(plain).toEqual(organization)
    for (const no of ['false', '0'])
      expect(await api.expect(200, 'GET', `/organizations?q=Featured&showFeatured=${no}`)).toEqual([organization])
    expect(await api.call('GET', '/organizations?showFeatured=maybe')).toMatchObject(
      refusal(400, 'guard.invalid_input'),
    )
    const [featured] = await api.expect(200, 'GET', '/organizations?q=Featured&showFeatured=true')
    expect(await api.expect(200, 'GET', '/organizations?q=Featured&showFeatured=1')).toEqual([featured])
    expect(featured).toEqual({
      ...organization,
      usersCount: 4,
      featuredUsers: users
        .slice(1)
        .reverse()
        .map(({ id, name }) => ({ id, name, avatar: null })),
    })
  })
})
