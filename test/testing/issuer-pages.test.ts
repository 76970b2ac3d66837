import { expect, test } from 'vitest'
import { consentPage, errorPage, selectAccountPage, signInPage } from '../../issuer/pages/index.ts'
import { readHtml, submissionOf } from '../../testing/html-page.ts'

/** The issuer's pages as the command reads them. */

const common = {
  locale: 'en',
  client: { name: 'Orders & <More>' },
  action: '/sign-in/abc',
  csrf: 'the-token',
} as const
const account = { name: 'Ada "the first"', identifier: 'ada@example.test' }
const button = (value: string) => ({ name: 'choice', value })

test('the sign-in, with what was entered before', () => {
  const { forms, title } = readHtml(
    signInPage({ ...common, identifier: `o'hara&co`, canCancel: true, error: undefined }).content,
  )
  expect(title).toContain('Orders & <More>')
  // The other one leads elsewhere.
  expect(forms).toHaveLength(2)
  const [form] = forms
  expect(form).toMatchObject({ action: '/sign-in/abc', method: 'post', buttons: [button('sign_in')] })
  expect([...submissionOf(form!, { values: { password: 'p&"' }, pressed: form!.buttons[0] })]).toEqual([
    ['csrf', 'the-token'],
    ['identifier', `o'hara&co`],
    ['password', 'p&"'],
    ['choice', 'sign_in'],
  ])
})

test('the sign-in of one person only, whose name cannot be changed', () => {
  const { forms } = readHtml(signInPage({ ...common, account: account.identifier, canCancel: false }).content)
  const identifier = forms[0]!.fields.find(({ name }) => name === 'identifier')
  expect(identifier).toMatchObject({ value: account.identifier, isReadOnly: true })
})

test('what is wrong is an alert', () => {
  const { alerts } = readHtml(signInPage({ ...common, canCancel: true, error: 'invalid_credentials' }).content)
  expect(alerts).toEqual([expect.stringMatching(/\w+ \w+/)])
})

test('the consent: only the form that allows is one of its buttons', () => {
  const { forms } = readHtml(
    consentPage({
      ...common,
      account,
      scopes: [{ name: 'profile' }],
      resources: [],
      organizations: [{ id: 'o1', name: 'Acme' }],
      redirectHost: 'app.test',
    }).content,
  )
  expect(forms.map(({ buttons }) => buttons)).toEqual([[button('another')], [button('allow'), button('deny')]])
})

test('the choice of an account', () => {
  const { forms } = readHtml(selectAccountPage({ ...common, account }).content)
  expect(forms[0]!.buttons).toEqual([button('continue'), button('another')])
})

test('an error has no form, and its text is what the command tells', () => {
  const { forms, text } = readHtml(
    errorPage({ locale: 'en', problem: 'invalid_redirect_uri', requestId: 'r-1', value: '<b>x</b>' } as never).content,
  )
  expect(forms).toEqual([])
  expect(text).toContain('<b>x</b>')
})
