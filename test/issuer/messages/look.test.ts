import { afterAll, beforeAll, expect, test } from 'vitest'
import { plainLook } from '../../../issuer/messages/mail-page.ts'
import { render } from '../../../issuer/messages/render.ts'
import { catalogueOf } from '../../../issuer/messages/texts/catalogues.ts'
import { mailLookFrom } from '../../../issuer/pages/mail-look.ts'
import { contrast } from '../../../issuer/pages/theme.ts'
import { startExperience, type TestExperience } from '../../support/experience.ts'

/** What operators put on pages is on mails too, and can do nothing there but be seen. */

const baseUrl = 'https://id.example.com'
const color = { primaryColor: '#ffe000', isDarkModeEnabled: true, darkPrimaryColor: '#200040' }
const mail = (look = plainLook) =>
  render({
    ...{ type: 'SignIn', usage: 'SignIn', channel: 'email', operators: [], look },
    catalogue: catalogueOf('en'),
    variables: { code: '123456', minutes: '10' },
  })

test('a name, colours and a logo are on the HTML, and the text stays as it is', () => {
  const branding = { logoUrl: `/assets/${'a'.repeat(64)}.png` }
  const look = mailLookFrom({ color, branding, displayName: 'Acme & Söhne' }, undefined, baseUrl)
  const { html, text, subject } = mail(look)
  expect(html).toContain(`<img src="${baseUrl}${branding.logoUrl}" alt="Acme &amp; Söhne"`)
  expect(html).toContain('@media (prefers-color-scheme:dark)')
  expect([text, subject]).toEqual([mail().text, mail().subject])
  expect(mail({ ...look, logo: undefined }).html).toContain('>Acme &amp; Söhne</p>')
  expect(mail().html).not.toContain('<img')
})

test('colours nobody could read are made readable, and who has no dark theme gets the light one', () => {
  const look = mailLookFrom({ color, branding: {}, displayName: null }, undefined, baseUrl)
  expect(contrast(look.color, '#ffffff')).toBeGreaterThan(4.5)
  expect(contrast(look.darkColor!, '#171a23')).toBeGreaterThan(4.5)
  const light = mailLookFrom(
    { color: { ...color, isDarkModeEnabled: false }, branding: {}, displayName: null },
    undefined,
    baseUrl,
  )
  expect(mail(light).html).toContain('<meta name="color-scheme" content="light">')
  expect(mail(light).html).not.toContain('prefers-color-scheme')
})

test('settings bring no markup into a mail, and no picture but over https', () => {
  const logoOf = (logoUrl: string, base = baseUrl) =>
    mailLookFrom({ color, branding: { logoUrl }, displayName: null }, undefined, base).logo
  expect(logoOf('http://localhost/x.png')).toBeUndefined()
  expect(logoOf('javascript:alert(1)')).toBeUndefined()
  expect(logoOf('data:image/png;base64,AAAA')).toBeUndefined()
  expect(logoOf('https://cdn.example/x.svg?1')).toBeUndefined()
  expect(logoOf(`/assets/${'a'.repeat(64)}.png`, 'http://localhost:3001')).toBeUndefined()

  const [name, logo] = ['"><script>alert(1)</script>', 'https://cdn.example/"onerror="alert(1)']
  for (const look of [
    { ...plainLook, name },
    { ...plainLook, name, logo },
  ]) {
    const { html } = mail(look)
    expect(html).not.toContain('<script')
    expect(html).not.toContain('"onerror')
    expect(html).toContain('&quot;&gt;&lt;script&gt;')
  }
})

let experience: TestExperience
beforeAll(async () => {
  experience = await startExperience({ settings: { displayName: 'Acme' } })
})
afterAll(() => experience.close())

test('a code looks like the application that it is for, which stands above the issuer', async () => {
  const { issuer, flow } = experience
  const shop = await flow.createClient()
  const own = { displayName: 'Acme Shop', color: { primaryColor: '#7a1111' } }
  expect((await issuer.api('PATCH', `/applications/${shop.id}/sign-in-experience`, own)).status).toBe(200)
  const mailFor = async (client: typeof shop) => {
    const person = await experience.createPerson()
    const pages = await experience.pages({ client })
    const identifier = { type: 'email', value: person.email }
    await pages.put('/', { interactionEvent: 'SignIn' })
    await pages.post('/verification/verification-code', { identifier, interactionEvent: 'SignIn' })
    return (await experience.messagesTo(person.email)).at(-1)?.html
  }
  const ofShop = await mailFor(shop)
  expect(ofShop).toContain('>Acme Shop</p>')
  expect(ofShop).toContain('#7a1111')
  expect(await mailFor(experience.client)).toContain('>Acme</p>')
})
