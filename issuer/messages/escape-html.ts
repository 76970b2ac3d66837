const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '\0': '\ufffd',
}
export const escapeHtml = (text: string): string =>
  text.toWellFormed().replace(/[&<>"'\0]/g, (character) => entities[character]!)
