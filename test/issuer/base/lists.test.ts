import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../support/management.ts'

/** Paging and search, which all lists share. */

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
  for (const [username, name] of [
    ['ada', 'Ada Lovelace'],
    ['grace', 'Grace Hopper'],
    ['alan', 'Alan 100% Turing'],
    ['kurt', 'Kurt Gödel'],
    ['barbara', 'Barbara Liskov'],
  ]) {
    await api.expect(200, 'POST', '/users', { username, name, primaryEmail: `${username}@example.test` })
  }
})
afterAll(() => api.close())

const found = async (query: string) =>
  (await api.expect(200, 'GET', `/users?${query}`)).map(({ username }: { username: string }) => username).sort()

describe('paging', () => {
  test('walks the whole list, newest first, along the links', async () => {
    const pages: string[][] = []
    let path: string | undefined = '/users?page_size=2'
    while (path !== undefined) {
      const answer = await api.call('GET', path)
      expect(answer.headers.get('total-number')).toBe('5')
      pages.push(answer.body.map(({ username }: { username: string }) => username))
      const next: string | undefined = /<([^>]*)>; rel="next"/.exec(answer.headers.get('link')!)?.[1]
      path = next?.replace(`${api.baseUrl}/api`, '')
    }
    expect(pages).toEqual([['barbara', 'kurt'], ['alan', 'grace'], ['ada']])
  })

  test('goes on from a row that the caller has, and back', async () => {
    const all = await api.expect(200, 'GET', '/users')
    const idOf = (name: string) => all.find(({ username }: { username: string }) => username === name).id
    const beside = async (query: string) => {
      const answer = await api.call('GET', `/users?page=2&page_size=2&${query}`)
      expect(answer.headers.get('total-number')).toBe('5')
      return answer.body.map(({ username }: { username: string }) => username)
    }
    expect(await beside(`after=${idOf('kurt')}`)).toEqual(['alan', 'grace'])
    expect(await beside(`after=${idOf('grace')}`)).toEqual(['ada'])
    expect(await beside(`after=${idOf('ada')}`)).toEqual([])
    expect(await beside(`before=${idOf('ada')}`)).toEqual(['alan', 'grace'])
    expect(await beside(`before=${idOf('kurt')}`)).toEqual(['barbara'])
    expect(await beside(`before=${idOf('barbara')}`)).toEqual([])
    expect(await beside(`after=${idOf('kurt')}&search=%25example%25`)).toEqual(['alan', 'grace'])
    const link = (await api.call('GET', `/users?page=2&page_size=2&after=${idOf('kurt')}`)).headers.get('link')
    expect(link).toContain(`<${api.baseUrl}/api/users?page=3&page_size=2>; rel="next"`)
  })

  test('keeps those apart that were made at one moment', async () => {
    const twins = Array.from({ length: 3 }, (_, index) => `twin_${index}`)
    for (const id of twins)
      await api.database.pool.query(`INSERT INTO users (id, created_at) VALUES ($1, '2001-02-03T04:05:06.789012Z')`, [
        id,
      ])
    const idsOf = async (query: string) =>
      (await api.expect(200, 'GET', `/users?page_size=1&${query}`)).map(({ id }: { id: string }) => id)
    expect(await idsOf('after=twin_0')).toEqual(['twin_1'])
    expect(await idsOf('after=twin_1')).toEqual(['twin_2'])
    expect(await idsOf('after=twin_2')).toEqual([])
    expect(await idsOf('before=twin_2')).toEqual(['twin_1'])
    for (const id of twins) await api.expect(204, 'DELETE', `/users/${id}`)
  })

  test('does not go on from a row that is not there, nor both ways at once', async () => {
    expect(await api.call('GET', '/users?after=nobody')).toMatchObject({
      ...{ status: 404, body: { code: 'entity.not_exists_with_id', data: { id: 'nobody' } } },
    })
    expect(await api.call('GET', '/users?after=nobody&before=nobody')).toMatchObject({
      ...{ status: 400, body: { code: 'guard.invalid_pagination' } },
    })
  })

  test('knows the number of all, on the last page and behind it', async () => {
    const totals = ['page=1', 'page=1&page_size=5', 'page=3&page_size=2', 'page=4&page_size=2'].map(async (page) =>
      (await api.call('GET', `/users?search=%25example%25&${page}`)).headers.get('total-number'),
    )
    expect(await Promise.all(totals)).toEqual(['5', '5', '5', '5'])
    expect((await api.call('GET', '/users?search=%25nobody%25')).headers.get('total-number')).toBe('0')
  })

  test('tells where the other pages are, keeping the rest of the query', async () => {
    const link = async (query: string) => (await api.call('GET', `/users?${query}`)).headers.get('link')
    const page = (number: number) =>
      `<${api.baseUrl}/api/users?search.username=%25a%25&page=${number}&page_size=1>; rel=`
    expect(await link('search.username=%25a%25&page=2&page_size=1')).toBe(
      `${page(1)}"first", ${page(1)}"prev", ${page(3)}"next", ${page(4)}"last"`,
    )
    const only = `${api.baseUrl}/api/users?page=1&page_size=20`
    expect(await link('')).toBe(`<${only}>; rel="first", <${only}>; rel="last"`)
  })

  test('of a long query repeats no more than fits into the header fields of an answer', async () => {
    const linked = async (length: number) => {
      const answer = await api.call('GET', `/users?page=2&page_size=1&x=${'y'.repeat(length)}`)
      expect(answer).toMatchObject({ status: 200, body: [{}] })
      expect(answer.headers.get('total-number')).toBe('5')
      return answer.headers.get('link')
    }
    const relations = async (length: number) => (await linked(length))?.match(/rel="\w+"/g)?.join(' ')
    expect(await relations(300)).toBe('rel="first" rel="prev" rel="next" rel="last"')
    expect(await relations(1_000)).toBe('rel="next"')
    expect(await linked(1_000)).toContain('page=3&page_size=1')
    expect(await linked(2_000)).toBeNull()
    expect(await linked(15_000)).toBeNull()
  })

  test('beyond the end is empty', async () => {
    const answer = await api.call('GET', '/users?page=9&page_size=2')
    expect(answer).toMatchObject({ status: 200, body: [] })
    expect(answer.headers.get('link')).toContain('page=3&page_size=2>; rel="prev"')
  })

  test.each(['page=0', 'page=-1', 'page=x', 'page=1.5', 'page_size=0', 'page_size=101', 'page=1&page=2', 'page='])(
    'refuses %s',
    async (query) => {
      const code = 'guard.invalid_pagination'
      expect(await api.call('GET', `/users?${query}`)).toMatchObject({ status: 400, body: { code } })
    },
  )

  test('is optional where lists are short', async () => {
    for (let number = 0; number < 21; number++) {
      await api.expect(200, 'POST', '/applications', { name: `Application ${number}`, type: 'SPA' })
    }
    const whole = await api.call('GET', '/applications?types=SPA')
    expect(whole.body).toHaveLength(21)
    expect(whole.headers.get('link')).toBeNull()
    const page = await api.call('GET', '/applications?types=SPA&page=2')
    expect(page.body).toHaveLength(1)
    expect(page.headers.get('total-number')).toBe('21')
  })
})

describe('search', () => {
  test.each([
    // A blank, and below an umlaut: what searches the ids as well must find nothing there by chance.
    ['search=%25A L%25', ['ada', 'barbara']],
    ['search=%25A L%25&isCaseSensitive=true', []],
    ['search.name=%25ACE%25', ['ada', 'grace']],
    ['search=grace%25&search=ada %25', ['ada', 'grace']],
    ['search.username=a%25&search.name=%25turing', ['ada', 'alan']],
    ['search.username=a%25&search.name=%25turing&joint=and', ['alan']],
    ['search.username=ADA&mode=exact', ['ada']],
    ['search.username=ADA&mode=exact&isCaseSensitive=true', []],
    ['search.username=ada&search.name=%25Hopper&mode.username=exact', ['ada', 'grace']],
    ['search.name=%25100\\%25%25', ['alan']],
    ['search.primaryEmail=kurt@%25', ['kurt']],
    ['search=%25KURT@example%25', ['kurt']],
    ['search=%25kurt@%25.test%25', ['kurt']],
    ['search=%25kurt@elsewhere%25', []],
    ['search=%25a@example%25', ['ada', 'barbara']],
    ['search=kurt@example.test&mode=exact', ['kurt']],
    ['search=nobody', []],
  ])('%s', async (query, usernames) => {
    expect(await found(query)).toEqual(usernames)
  })

  test('two letters, and what everybody has, are found and counted', async () => {
    expect(await found('search=%25%C3%B6d%25')).toEqual(['kurt'])
    const answer = await api.call('GET', '/users?search=%25EXAMPLE.test%25&page_size=2&page=2')
    expect(answer.body.map(({ username }: { username: string }) => username)).toEqual(['alan', 'grace'])
    expect(answer.headers.get('total-number')).toBe('5')
  })

  test('a text that spans two fields is not found', async () => {
    expect(await found(`search=${encodeURIComponent('%ada\nada%')}`)).toEqual([])
    expect(await found(`search=${encodeURIComponent('%test%lovelace%')}`)).toEqual([])
  })

  test('follows changes and deletions', async () => {
    const { id } = await api.expect(200, 'POST', '/users', { username: 'kathleen', name: 'Kathleen Britten' })
    await api.expect(200, 'PATCH', `/users/${id}`, { name: 'Kathleen Booth' })
    expect(await found('search=%25Britten%25')).toEqual([])
    expect(await found('search=%25booth%25')).toEqual(['kathleen'])
    await api.call('DELETE', `/users/${id}`)
    expect(await found('search=%25booth%25')).toEqual([])
  })

  test('counts what it finds', async () => {
    const answer = await api.call('GET', '/users?search.username=a%25&page_size=1')
    expect(answer.body).toHaveLength(1)
    expect(answer.headers.get('total-number')).toBe('2')
  })

  test.each([
    'search.password=x',
    'search.passwordDigest=%25',
    'mode.x=like',
    'mode=posix',
    'search=',
    'joint=xor',
    'search=a\\',
    'isCaseSensitive=maybe',
  ])('refuses %s', async (query) => {
    for (const list of ['/users', '/roles', '/applications']) {
      expect(await api.call('GET', `${list}?${query}`)).toMatchObject({
        status: 400,
        body: { code: 'request.invalid_input' },
      })
    }
  })

  // Existing clients look for these words in the message.
  test.each([
    ['search.primaryEmail=&search=tom', 'search.primaryEmail: cannot be empty'],
    ['search.primaryEmail=%25a%25&mode.primaryEmail=similar%20to', 'mode.primaryEmail: is not valid'],
    ['search.email=%25a%25', 'search.email: is not valid'],
    ['search.primaryEmail=%25a%25&joint=and1', 'joint: is not valid'],
  ])('says of %s what is wrong with it, in the message too', async (query, words) => {
    const { status, body } = await api.call('GET', `/users?${query}`)
    expect([status, body.code]).toEqual([400, 'request.invalid_input'])
    expect(body.details).toContain(words)
    expect(body.message).toBe(`The search is not valid. ${body.details}`)
    expect(body.data.issues).toHaveLength(1)
  })

  test('has nothing to do with what else a list is asked for', async () => {
    const refused = { status: 400, body: { code: 'guard.invalid_input', message: 'The request is not valid.' } }
    expect(await api.call('GET', '/users?search=&excludeRoleId=')).toMatchObject(refused)
    expect(await api.call('GET', '/applications?types=Toaster')).toMatchObject(refused)
  })

  test('takes its text as a value, never as SQL', async () => {
    const text = `' OR '1'='1`
    expect(await found(`search=${encodeURIComponent(text)}`)).toEqual([])
    expect(await found(`search.username=${encodeURIComponent(`x'); DROP TABLE users; --`)}&mode=exact`)).toEqual([])
    expect(await found('search=%25')).toHaveLength(5)
  })
})
