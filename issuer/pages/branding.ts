import type { Logger } from '../../platform/logger.ts'
import { sha256 } from '../../platform/secret.ts'
import { checkCustomCss } from '../directory/sign-in-experience/custom-css.ts'
import type { Settings } from '../directory/sign-in-experience/settings.ts'
import {
  type ApplicationExperience,
  defaultColors,
  type SignInExperience,
} from '../directory/sign-in-experience/sign-in-experience.ts'
import { light } from './styles.ts'
import { type ThemeName, themeOf } from './theme.ts'

/** What an operator puts on the pages. A page without any of it looks as we made it. */
export interface Branding {
  /** What is in the stylesheet of its own; `href` is its address. */
  stylesheet: { href: string; css: string } | undefined
  logo: Pictures | undefined
  favicon: Pictures | undefined
  /** Instead of ours. */
  name: string | undefined
  hidesOurs: boolean
  hasDarkTheme: boolean
  termsOfUseUrl: string | undefined
  privacyPolicyUrl: string | undefined
  support: string | undefined
  /** Plain texts by `<page>.<part>` and `<page>.<part>.<language>`. */
  texts: Readonly<Record<string, string>>
}

export interface Pictures {
  light: string
  dark: string
}

/** Whose: the issuer's, or that of one application. It stands in the address of the stylesheet. */
const ofIssuer = 'default'

/** An application's own, above the issuer's. */
export const brandingFrom = (
  experience: SignInExperience,
  own: ApplicationExperience | undefined,
  owner: string = ofIssuer,
): Branding => {
  const color = { ...experience.color, ...own?.color }
  const pictures = { ...experience.branding, ...own?.branding }
  const sheet = checkCustomCss(own?.customCss ?? experience.customCss ?? '').css
  const css = colorsOf(color) + sheet
  const { supportEmail, supportWebsiteUrl } = experience
  return {
    stylesheet: css === '' ? undefined : { href: `/assets/branding/${owner}-${digestOf(css)}.css`, css },
    logo: picturesOf(pictures['logoUrl'], pictures['darkLogoUrl']),
    favicon: picturesOf(pictures['favicon'], pictures['darkFavicon']),
    name: own?.displayName ?? experience.displayName ?? undefined,
    hidesOurs: experience.hideLogtoBranding,
    hasDarkTheme: color.isDarkModeEnabled,
    termsOfUseUrl: own?.termsOfUseUrl ?? experience.termsOfUseUrl ?? undefined,
    privacyPolicyUrl: own?.privacyPolicyUrl ?? experience.privacyPolicyUrl ?? undefined,
    support: supportWebsiteUrl ?? (supportEmail === null ? undefined : `mailto:${supportEmail}`),
    texts: experience.customContent,
  }
}

const digestOf = (css: string) => sha256(css).toString('hex').slice(0, 16)

const picturesOf = (forLight: string | undefined, forDark: string | undefined): Pictures | undefined => {
  const [one, other] = [forLight ?? forDark, forDark ?? forLight]
  return one === undefined || other === undefined ? undefined : { light: one, dark: other }
}

const colorsOf = ({ primaryColor, darkPrimaryColor, isDarkModeEnabled }: SignInExperience['color']): string => {
  const variables = (name: ThemeName, color: string) =>
    Object.entries(themeOf(name, color))
      .map((pair) => pair.join(':'))
      .join(';')
  const isOurs = (color: string, ours: string) => color.toLowerCase() === ours
  const inLight = isOurs(primaryColor, defaultColors.primaryColor) ? '' : `:root{${variables('light', primaryColor)}}`
  const inDark = (declarations: string) => `@media (prefers-color-scheme:dark){:root{${declarations}}}`
  if (!isDarkModeEnabled) {
    // Whoever prefers the dark gets the light theme too.
    const again = `color-scheme:light;${light.replace(/\n\s*/g, '')}${variables('light', primaryColor)}`
    return inLight + inDark(again)
  }
  if (isOurs(darkPrimaryColor, defaultColors.darkPrimaryColor) && inLight === '') return ''
  return inLight + inDark(variables('dark', darkPrimaryColor))
}

export interface Brandings {
  /** For the pages of an application, or for those of none. Never fails: without it a page looks as we made it. */
  of(applicationId: string | undefined): Promise<Branding | undefined>
  /** The stylesheet at a path below `/assets/branding/`; `isCurrent`: it is what the path says. */
  stylesheet(file: string): Promise<{ css: string; isCurrent: boolean } | undefined>
}

export const createBrandings = ({
  settings,
  logger,
}: {
  settings: Pick<Settings, 'experience' | 'ofApplication' | 'refreshed'>
  logger: Logger
}): Brandings => {
  // The settings are new objects after every change.
  const known = new WeakMap<object, Branding>()

  const find = async (applicationId: string | undefined): Promise<Branding> => {
    const own = applicationId === undefined ? undefined : await settings.ofApplication(applicationId)
    const experience = settings.experience()
    const key = own ?? experience
    const made = known.get(key) ?? brandingFrom(experience, own, own && applicationId)
    known.set(key, made)
    return made
  }

  const of: Brandings['of'] = async (applicationId) => {
    try {
      return await find(applicationId)
    } catch (error) {
      logger.warn({ err: error, applicationId }, 'the branding of a page could not be made')
      return undefined
    }
  }

  return {
    of,
    async stylesheet(file) {
      const owner = /^(default|[0-9a-z]{1,21})-[0-9a-f]{16}\.css$/.exec(file)?.[1]
      if (owner === undefined) return undefined
      const applicationId = owner === ofIssuer ? undefined : owner
      const isNamed = (branding: Branding | undefined) => branding?.stylesheet?.href.endsWith(`/${file}`) === true
      let branding = await of(applicationId)
      if (!isNamed(branding)) {
        // Another instance made the page after a change that this one has not heard of yet.
        await settings.refreshed()
        branding = await of(applicationId)
      }
      return { css: branding?.stylesheet?.css ?? '', isCurrent: isNamed(branding) }
    },
  }
}
