import type { Page as Tab } from 'playwright-core'
import type { Page } from '../harness/comparison.ts'
import { percentile } from '../harness/percentiles.ts'
import { seeded } from '../targets/management-seed-store.ts'
import { type ConsoleWorld, watchRequests } from './console-world.ts'
import { verdict } from './sign-in-world.ts'

const firstPaintAtMostMs = 600
const turnAtMostMs = 150
const searchAtMostMs = 200

/** In each round; a browser of its own for each row of the tables. */
const loads = 3
const turns = 10
const searches = 6
/** A browser compiles and caches for itself when it is new. */
const warmUp = 3

interface Taken {
  name: string
  ms: number[]
}

/** How long somebody waits until Chromium has painted what they asked for. */
export const measurePaints = async (
  world: ConsoleWorld,
  rounds: number,
  progress: (line: string) => void,
): Promise<Page> => {
  const firstPaints: number[] = []
  const places = pagesOfUsers.map((place) => ({ ...place, ms: [] as number[] }))
  const looked = kindsOfSearch.map((kind) => ({ ...kind, ms: [] as number[], fromKey: [] as number[] }))
  for (let load = 0; load < warmUp; load++) await firstPaintOf(world)
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1}/${rounds}: the first page`)
    for (let load = 0; load < loads; load++) firstPaints.push(await firstPaintOf(world))
    for (const { name, page, ms } of places) {
      progress(`round ${round + 1}/${rounds}: next page, ${name}`)
      ms.push(...(await turnPages(world, page + round * turns)))
    }
    for (const { where, name, text, ms, fromKey } of looked) {
      progress(`round ${round + 1}/${rounds}: search, ${name}`)
      const texts = Array.from({ length: searches }, (_, index) => text(round * searches + index))
      for (const one of await search(world, where, texts)) {
        ms.push(one.fromRequest)
        fromKey.push(one.fromKey)
      }
    }
  }
  return {
    tables: [
      [
        [`largest contentful paint, ${firstPaints.length} loads, empty cache`, 'p50 ms', 'p95 ms', 'bar', ''],
        row({ name: 'the first page', ms: firstPaints }, firstPaintAtMostMs, 0.5),
      ],
      [
        [`the next page of ${seeded.users} users, ${rounds * turns} clicks each`, 'p50 ms', 'p95 ms', 'bar', ''],
        ...places.map((place) => row(place, turnAtMostMs, 0.95)),
      ],
      [
        [
          `search among them, ${rounds * searches} times each`,
          'p50 ms',
          'p95 ms',
          'bar',
          '',
          'from the last key, p95 ms',
        ],
        ...looked.map((kind) => [
          ...row({ ...kind, name: `${kind.where}: ${kind.name}` }, searchAtMostMs, 0.95),
          percentile(kind.fromKey, 0.95).toFixed(0),
        ]),
      ],
    ],
    figures: { firstPaints, places, looked },
  }
}

/** The bar is on that percentile. */
const row = ({ name, ms }: Taken, atMostMs: number, share: number): string[] => [
  name,
  percentile(ms, 0.5).toFixed(0),
  percentile(ms, 0.95).toFixed(0),
  `≤ ${atMostMs} ms${share === 0.5 ? ' p50' : ' p95'}`,
  verdict(percentile(ms, share) <= atMostMs),
]

const firstPaintOf = async ({ url, open }: ConsoleWorld): Promise<number> => {
  const tab = await open()
  const { quiet } = watchRequests(tab)
  await tab.goto(`${url}/`)
  await quiet()
  const ms = await tab.evaluate<number>(largestPaint)
  await tab.context().close()
  return ms
}

/** The last one, in ms from the beginning of the navigation. As text, like all that runs in the page. */
const largestPaint = `new Promise((resolve) => {
  new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime))
    .observe({ type: 'largest-contentful-paint', buffered: true })
})`

/** Where in the list of all users the clicks begin. */
const pagesOfUsers = [
  { name: 'from the first page on', page: 1 },
  { name: 'from page 1 000 on', page: 1_000 },
  { name: 'in the middle, from page 25 000 on', page: seeded.users / 20 / 2 },
]

/** From the press of the button to the rows of the next page on the screen. */
const turnPages = async (world: ConsoleWorld, from: number): Promise<number[]> => {
  const tab = await openAt(world, `/users?page=${from}`)
  const took: number[] = []
  for (let turn = 0; turn < turns; turn++) {
    await tab.evaluate('bench.watchTurn()')
    await tab.getByRole('button', { name: 'Next page' }).click()
    took.push(await tab.evaluate<number>('bench.result'))
  }
  await tab.context().close()
  return took
}

interface KindOfSearch {
  where: 'list' | 'palette'
  name: string
  /** The nth text that is looked for. In one browser none twice, because answers are kept. */
  text: (index: number) => string
}

const someUser = (index: number): number => (20_011 * index + 12_345) % seeded.users
const letters = 'abcdef'
const inOtherCase = (text: string, index: number) =>
  [...text].map((letter, place) => ((index >> place) % 2 ? letter.toUpperCase() : letter)).join('')

const anywhere: Omit<KindOfSearch, 'where'>[] = [
  { name: 'a name', text: (index) => `User ${someUser(index)}` },
  { name: 'an address', text: (index) => `user.${someUser(index)}@example.test` },
  { name: 'three digits', text: (index) => String(100 + 7 * index) },
  { name: 'finds nobody', text: (index) => `zzqq${index}` },
]

const kindsOfSearch: KindOfSearch[] = [
  ...anywhere.map((kind) => ({ ...kind, where: 'list' as const })),
  { where: 'list', name: 'finds everybody', text: (index) => inOtherCase('user', index) },
  { where: 'list', name: 'two letters', text: (index) => letters[index % 6]! + letters[Math.floor(index / 6) % 6]! },
  ...anywhere.map((kind) => ({ ...kind, where: 'palette' as const })),
]

interface Found {
  /** From the request after the pause in typing to the results on the screen, in ms. */
  fromRequest: number
  /** From the last key on. */
  fromKey: number
  /** One, unless typing took so long that a part of the text was asked for. */
  requests: number
}

const search = async (
  world: ConsoleWorld,
  where: KindOfSearch['where'],
  texts: readonly string[],
): Promise<Found[]> => {
  const tab = await openAt(world, '/users')
  const took: Found[] = []
  for (const text of texts) {
    if (where === 'palette') await tab.keyboard.press('Control+k')
    const field = where === 'palette' ? tab.getByRole('dialog').getByRole('searchbox') : tab.getByRole('searchbox')
    await field.fill('')
    await tab.evaluate(`bench.watchSearch(${JSON.stringify(where)}, ${JSON.stringify(text)})`)
    await field.pressSequentially(text, { delay: 20 })
    took.push(await tab.evaluate<Found>('bench.result'))
    if (where === 'palette') await tab.keyboard.press('Escape')
  }
  await tab.context().close()
  return took.filter(({ requests }) => requests === 1)
}

const openAt = async ({ url, open }: ConsoleWorld, path: string): Promise<Tab> => {
  const tab = await open()
  await tab.addInitScript(inPage)
  const { quiet } = watchRequests(tab)
  await tab.goto(url + path)
  await quiet()
  return tab
}

/** What the page is watched with; each `watch…` leaves a promise in `bench.result`. */
const inPage = `
  window.bench = { result: undefined }
  const calls = { path: undefined, requests: 0, asked: 0, answered: 0 }
  const send = window.fetch
  window.fetch = async (address, ...more) => {
    if (!String(address).startsWith(calls.path)) return send(address, ...more)
    calls.requests++
    calls.asked = performance.now()
    const answer = await send(address, ...more)
    calls.answered = performance.now()
    return answer
  }

  const until = (isSo) => new Promise((resolve) => {
    if (isSo()) return resolve()
    const observer = new MutationObserver(() => {
      if (!isSo()) return
      observer.disconnect()
      resolve()
    })
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true })
  })
  // The message comes after the frame was made.
  const painted = () => new Promise((resolve) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => resolve(performance.now())
    port2.postMessage(null)
  }))
  const rows = () => [...document.querySelectorAll('tbody [data-row]')].map((row) => row.getAttribute('href'))

  bench.watchTurn = () => {
    const before = rows()[0]
    const pressed = new Promise((resolve) =>
      addEventListener('pointerdown', ({ timeStamp }) => resolve(timeStamp), { capture: true, once: true }))
    bench.result = pressed.then(async (start) => {
      await until(() => rows().length === 20 && rows()[0] !== before)
      return (await painted()) - start
    })
  }

  const isListed = (text) => {
    let wasBusy = false
    return () => {
      const isBusy = document.querySelector('table')?.ariaBusy === 'true'
      if (new URLSearchParams(location.search).get('search') !== text) return false
      wasBusy ||= isBusy
      return wasBusy && !isBusy
    }
  }
  const isInPalette = () => () =>
    calls.answered > calls.asked && /Found|Nothing has that name/.test(document.querySelector('[role=dialog]')?.textContent)

  bench.watchSearch = (where, text) => {
    Object.assign(calls, { path: where === 'list' ? '/console/api/users?' : '/console/api/search?', requests: 0 })
    let lastKey = 0
    const hear = ({ timeStamp }) => { lastKey = timeStamp }
    addEventListener('keydown', hear, true)
    bench.result = until(where === 'list' ? isListed(text) : isInPalette()).then(async () => {
      const end = await painted()
      removeEventListener('keydown', hear, true)
      return { fromRequest: end - calls.asked, fromKey: end - lastKey, requests: calls.requests }
    })
  }
`
