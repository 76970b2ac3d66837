import { expect, test } from 'vitest'
import { html, render } from '../../../issuer/pages/html.ts'

test('a value cannot become markup, in text or in an attribute', () => {
  const value = `"><script>alert('1')</script>&amp;`
  const escaped = '&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;'
  expect(render(html`<p title="${value}">${value}</p>`)).toBe(`<p title="${escaped}">${escaped}</p>`)
})

test('templates nest, alone and in arrays, and are not escaped twice', () => {
  const items = ['a', '<b>'].map((text) => html`<li>${text}</li>`)
  expect(render(html`<ul>${items}</ul>${[html`<hr>`, ['&', 1]]}`)).toBe(
    '<ul><li>a</li><li>&lt;b&gt;</li></ul><hr>&amp;1',
  )
})

test('what is left out leaves nothing behind', () => {
  expect(render(html`<p>${undefined}${false}${''}${0}</p>`)).toBe('<p>0</p>')
})

test('an object that looks like a template is not one', () => {
  const forged = { markup: '<script>', 'Symbol(markup)': '<script>', toString: () => '<script>' }
  expect(() => html`${forged as never}`).toThrow()
})

test('characters that HTML cannot hold are replaced', () => {
  expect(render(html`${'a\0b\ud800c'}`)).toBe('a\ufffdb\ufffdc')
})
