/**
 * RFC 8707 §2: an absolute URI without a fragment. Indicators are compared byte for byte, so they must be written the
 * way URIs are: ASCII, no spaces; at most 2048 characters.
 */
export const isIndicator = (text: string): boolean =>
  text.length <= 2048 && /^[a-z][a-z0-9+.-]*:[\w\-.~:/?[\]@!$&'()*+,;=%]+$/i.test(text) && URL.canParse(text)

const defaultPorts: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }

/**
 * What else, in lower case, may have been meant by this indicator: with or without a final slash and the default port.
 */
export const likelySpellings = (indicator: string): string[] => {
  const lower = indicator.toLowerCase()
  // Parsing drops default ports.
  const { href, origin, protocol, port } = new URL(lower)
  const withPort =
    protocol in defaultPorts && port === '' ? `${origin}:${defaultPorts[protocol]}${href.slice(origin.length)}` : href
  return [lower, href, withPort].map(withoutFinalSlashes).flatMap((spelling) => [spelling, `${spelling}/`])
}

const withoutFinalSlashes = (text: string): string => {
  let end = text.length
  while (text[end - 1] === '/') end--
  return text.slice(0, end)
}
