import type { Page } from 'playwright-core'

/** What a button of the page has copied. Pages of the console may write to the clipboard, not read it. */
export const clipboardOf = async (page: Page): Promise<string> => {
  await page.evaluate(`document.body.append(Object.assign(document.createElement('textarea'), { id: 'pasted' }))`)
  await page.locator('#pasted').focus()
  await page.keyboard.press('Control+v')
  const text = await page.locator('#pasted').inputValue()
  await page.evaluate(`document.querySelector('#pasted').remove()`)
  return text
}
