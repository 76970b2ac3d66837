const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  // HTML has no way to write it (HTML Standard §13.2.3.5).
  '\0': '\ufffd',
}

/** As it stands in text or between the quotes of an attribute; nowhere else is it safe. */
export const escapeHtml = (text: string): string =>
  text.toWellFormed().replace(/[&<>"'\0]/g, (character) => entities[character]!)
