import { expect, test } from 'vitest'
import { readHtml, submissionOf } from '../../testing/html-page.ts'

/** As the issuer's own pages are written. */
const signInPage = `<!doctype html>
<html lang="en" dir="ltr">
<head><meta charset="utf-8"><title>Error: Sign in · Caf&eacute; &amp; Bar</title><style>form > p { color: "</style>"</style></head>
<body><main>
<!-- <form action="/forged"><input name="stolen"></form> -->
<div class="problem" role="alert" tabindex="-1" autofocus><div><h2>There is a problem</h2></div>
<p><a href="#password">The name or the password is wrong.</a></p></div>
<form method="post" action="/sign-in/abc?step=1&amp;again=2" novalidate>
<input type="hidden" name="csrf" value="a&quot;b&#39;c&#x3C;&lt;d">
<input id="identifier" name="identifier" type="text" value="alice&amp;co" dir="auto"
 autocomplete="username webauthn" spellcheck=false autofocus>
<input id="password" name="password" type="password">
<label><input type="checkbox" name="keep" value="yes"><span>Keep me signed in</span></label>
<p><button name="choice" value="sign_in">Sign in</button>
<button class="quiet" name="choice" value="cancel">Cancel</button></p>
</form>
</main></body></html>`

test('a sign-in page gives what a browser would submit', () => {
  const { forms, alerts, title } = readHtml(signInPage)
  const [form, ...others] = forms
  expect(others).toEqual([])
  expect({ action: form!.action, method: form!.method }).toEqual({
    action: '/sign-in/abc?step=1&again=2',
    method: 'post',
  })
  expect(form!.buttons).toEqual([
    { name: 'choice', value: 'sign_in' },
    { name: 'choice', value: 'cancel' },
  ])
  const sent = submissionOf(form!, { values: { password: 'sesame öffne dich' }, pressed: form!.buttons[0] })
  expect([...sent]).toEqual([
    ['csrf', `a"b'c<<d`],
    ['identifier', 'alice&co'],
    ['password', 'sesame öffne dich'],
    ['choice', 'sign_in'],
  ])
  expect(alerts).toEqual(['There is a problem The name or the password is wrong.'])
  expect(title).toBe('Error: Sign in · Caf&eacute; & Bar')
})

test('what is not checked, disabled, nameless or not pressed is not sent', () => {
  const { forms } = readHtml(`<FORM METHOD=POST ACTION=/go>
    <input name=plain value=1><input name=off value=1 disabled><input value=nameless>
    <input type=checkbox name=scopes value=a checked><input type=checkbox name=scopes value=b>
    <input type=CHECKBOX name=bare checked><input type=radio name=one value=1><input type=radio name=one value=2 checked>
    <select name=locale><option value=en>English<option value=de selected>Deutsch</select>
    <textarea name=note>
&lt;b>text</b> </textarea>
    <input type=submit name=go value=Go><button type=button name=script>Script</button><button disabled name=no>No</button>
  </form><form><input name=other></form>`)
  expect(forms.map(({ action, method }) => [action, method])).toEqual([
    ['/go', 'post'],
    ['', 'get'],
  ])
  expect([...submissionOf(forms[0]!)]).toEqual([
    ['plain', '1'],
    ['scopes', 'a'],
    ['bare', 'on'],
    ['one', '2'],
    ['locale', 'de'],
    ['note', '<b>text</b> '],
  ])
  expect(forms[0]!.buttons).toEqual([{ name: 'go', value: 'Go' }])
})

test('text of a page cannot steer the terminal, and is no markup', () => {
  const { text, forms } = readHtml('<p>a &#27;[31mred&#x9b;2J\u202e</p><p>1 &lt; 2 < 3</p><form><input name=x>')
  expect(text).toBe('a [31mred 2J 1 < 2 < 3')
  expect(forms).toHaveLength(1)
})

test('a long page of broken tags is read at once', () => {
  const started = performance.now()
  readHtml(`${'<a b="'.repeat(20_000)}${'<input x '.repeat(20_000)}`)
  expect(performance.now() - started).toBeLessThan(5_000)
})
