import type { Field } from '../../components/field.ts'
import type { Calls } from '../../generated/api.ts'

export type Experience = Calls['getSignInExperience']['answer']

const picture = (path: string, label: string): Field => ({
  ...{ path: `branding.${path}`, label, kind: 'picture', isCode: true, placeholder: 'https://…/logo.svg' },
})

export const brandingGroups: Readonly<Record<string, readonly Field[]>> = {
  Name: [
    { path: 'displayName', label: 'Name on the pages', placeholder: 'Acme' },
    { path: 'hideLogtoBranding', label: 'Without ours', kind: 'flag' },
  ],
  Colours: [
    { path: 'color.primaryColor', label: 'On light pages', kind: 'color', isRequired: true, isCode: true },
    { path: 'color.isDarkModeEnabled', label: 'Dark pages for those who prefer them', kind: 'flag' },
    { path: 'color.darkPrimaryColor', label: 'On dark pages', kind: 'color', isRequired: true, isCode: true },
  ],
  Pictures: [
    picture('logoUrl', 'Logo'),
    picture('darkLogoUrl', 'Logo on dark pages'),
    picture('favicon', 'Icon of the tab'),
    picture('darkFavicon', 'Icon of a dark tab'),
  ],
  Links: [
    { path: 'termsOfUseUrl', label: 'Terms of use', isCode: true },
    { path: 'privacyPolicyUrl', label: 'Privacy policy', isCode: true },
    { path: 'supportEmail', label: 'Support by e-mail', isCode: true },
    { path: 'supportWebsiteUrl', label: 'Support on the web', isCode: true },
  ],
  Texts: [
    {
      ...{ path: 'texts', label: 'Notes on pages', kind: 'list', placeholder: 'sign_in.note.de: Willkommen' },
      hint: 'The page and “note”, if wanted the language, then the text; “note” alone stands on every page.',
    },
  ],
  Stylesheet: [
    {
      ...{ path: 'customCss', label: 'Custom CSS', kind: 'lines', isCode: true },
      hint: 'At most 16384 characters; what it refers to must have been uploaded.',
    },
  ],
}

/** Texts as lines, `name: text`. */
export const toForm = (experience: Experience) => ({
  ...experience,
  texts: Object.entries(experience.customContent).map(([name, text]) => `${name}: ${text}`),
})

export const toBody = ({ texts, ...change }: Record<string, unknown>): Record<string, unknown> => {
  if (!Array.isArray(texts)) return change
  return {
    ...change,
    customContent: Object.fromEntries(
      texts.map((line: string) => {
        const [name = '', ...text] = line.split(':')
        return [name.trim(), text.join(':').trim()]
      }),
    ),
  }
}

const isColor = (value: unknown): boolean => /^#([\da-f]{3}|[\da-f]{6})$/i.test(String(value))
const isLink = (value: unknown): boolean => URL.canParse(String(value)) || String(value).startsWith('/assets/')

/** What pages can be made of, with what is only half typed left out. */
export const previewable = (form: object): object => {
  const { texts, ...record } = form as ReturnType<typeof toForm>
  const { displayName, hideLogtoBranding, customCss, supportEmail, color, branding, ...rest } = record
  const { termsOfUseUrl, privacyPolicyUrl, supportWebsiteUrl } = rest
  const only = (members: unknown, isFine: (value: unknown) => boolean) =>
    Object.fromEntries(Object.entries(Object(members)).filter(([, value]) => isFine(value)))
  return {
    ...(displayName ? { displayName: String(displayName).slice(0, 60) } : {}),
    ...(customCss ? { customCss: String(customCss).slice(0, 16_384) } : {}),
    ...(/^\S+@\S+\.\w+$/.test(String(supportEmail)) && { supportEmail }),
    ...only({ termsOfUseUrl, privacyPolicyUrl, supportWebsiteUrl }, (link) => URL.canParse(String(link))),
    hideLogtoBranding,
    color: only(color, (value) => typeof value === 'boolean' || isColor(value)),
    branding: only(branding, isLink),
    ...toBody({ texts: texts.filter((line) => line.includes(':')) }),
  }
}
