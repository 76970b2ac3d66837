/** Colours of an operator, made fit to be read: 4.5 to 1 wherever text is in them or on them (WCAG 2.2, 1.4.3). */

type Rgb = readonly [number, number, number]

const parse = (hex: string): Rgb => {
  const digits = hex.length === 4 ? [...hex.slice(1)].map((digit) => digit + digit).join('') : hex.slice(1)
  const number = Number.parseInt(digits, 16)
  return [number >> 16, (number >> 8) & 255, number & 255]
}

const write = (color: Rgb): string => `#${color.map((part) => part.toString(16).padStart(2, '0')).join('')}`

const mix = (one: Rgb, other: Rgb, share: number): Rgb => {
  const at = (index: 0 | 1 | 2) => Math.round(one[index] + (other[index] - one[index]) * share)
  return [at(0), at(1), at(2)]
}

/** WCAG 2.2, relative luminance. */
const luminance = (color: Rgb): number => {
  const [red, green, blue] = color.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as [number, number, number]
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const contrastOf = (one: Rgb, other: Rgb): number => {
  const [darker, lighter] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number]
  return (lighter + 0.05) / (darker + 0.05)
}

/** From 1 to 21. */
export const contrast = (one: string, other: string): number => contrastOf(parse(one), parse(other))

const black: Rgb = [0, 0, 0]
const white: Rgb = [255, 255, 255]
const forText = 4.5

/** What text in the colour stands on (`styles.ts`), and where the colour goes when it cannot be read there. */
const themes = {
  light: { card: '#ffffff', page: '#f4f5f8', away: black },
  dark: { card: '#171a23', page: '#0d0f15', away: white },
} as const
export type ThemeName = keyof typeof themes

/**
 * The variables of a theme. Buttons have the colour as it is, with black or white on it: one of the two can be read on
 * any colour. As text, and as what shows the focus, it goes towards black or white until it can be read.
 */
export const themeOf = (name: ThemeName, brandColor: string): Readonly<Record<string, string>> => {
  const theme = themes[name]
  const brand = parse(brandColor)
  const card = parse(theme.card)
  const tint = mix(card, brand, 0.1)
  const grounds = [card, parse(theme.page), tint]
  const isReadable = (color: Rgb) => grounds.every((ground) => contrastOf(color, ground) >= forText)
  const steps = Array.from({ length: 51 }, (_, step) => mix(brand, theme.away, step / 50))
  const main = steps.find(isReadable) ?? theme.away
  const on = (ground: Rgb) => (contrastOf(white, ground) >= forText ? white : black)
  const onButton = on(brand)
  return {
    '--main': write(main),
    '--main-over': write(mix(main, theme.away, 0.15)),
    '--on-main': write(on(main)),
    '--button': write(brand),
    // Away from what stands on it.
    '--button-over': write(mix(brand, onButton === white ? black : white, 0.15)),
    '--on-button': write(onButton),
    '--button-edge': write(main),
    '--tint': write(tint),
  }
}
