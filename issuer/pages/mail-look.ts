import type { ApplicationExperience, SignInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import { themeOf } from './theme.ts'

type Branded = Pick<SignInExperience, 'color' | 'branding' | 'displayName'>

/** What is on mails of what operators put on pages; an application's own above the issuer's. */
export const mailLookFrom = (
  experience: Branded,
  own: Pick<ApplicationExperience, 'color' | 'branding' | 'displayName'> | undefined,
  baseUrl: string,
) => {
  const { primaryColor, darkPrimaryColor, isDarkModeEnabled } = { ...experience.color, ...own?.color }
  const { logoUrl, darkLogoUrl } = { ...experience.branding, ...own?.branding }
  return {
    name: own?.displayName ?? experience.displayName ?? undefined,
    logo: logoFor(logoUrl ?? darkLogoUrl, baseUrl),
    color: themeOf('light', primaryColor)['--main']!,
    darkColor: isDarkModeEnabled ? themeOf('dark', darkPrimaryColor)['--main'] : undefined,
  }
}

/** Readers of mails fetch pictures from anywhere, so over https alone; hardly any of them shows SVG. */
const logoFor = (picture: string | undefined, baseUrl: string): string | undefined => {
  if (picture === undefined) return undefined
  const url = URL.parse(picture, baseUrl)
  return url?.protocol === 'https:' && !/\.svg$/i.test(url.pathname) ? url.href : undefined
}
