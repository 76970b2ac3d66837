import { onlyValue } from '../../base/read-form.ts'
import { type UserProfile, userPatch, userProfile } from '../../directory/users/user.ts'
import { type AccountError, type PlainMessage, type ProfileField, profilePage } from '../../pages/account/index.ts'
import type { AccountPage } from './account-page.ts'
import { errorOf } from './errors.ts'

type PlainField = Exclude<keyof UserProfile, 'address' | 'profile' | 'preferredUsername'>
type AddressField = Exclude<keyof NonNullable<UserProfile['address']>, 'formatted'>

type Row<Name> = readonly [name: Name, label: PlainMessage, autocomplete?: string, hint?: PlainMessage]

const plainRows: readonly Row<PlainField>[] = [
  ['givenName', 'accountGivenName', 'given-name'],
  ['middleName', 'accountMiddleName', 'additional-name'],
  ['familyName', 'accountFamilyName', 'family-name'],
  ['nickname', 'accountNickname', 'nickname'],
  ['gender', 'accountGender', 'sex'],
  ['birthdate', 'accountBirthdate', 'bday', 'accountBirthdateHint'],
  ['website', 'accountWebsite', 'url'],
  ['zoneinfo', 'accountZoneinfo', 'off', 'accountZoneinfoHint'],
  ['locale', 'accountLanguage', 'language', 'accountLanguageHint'],
]

const addressRows: readonly Row<AddressField>[] = [
  ['streetAddress', 'accountStreet', 'street-address'],
  ['postalCode', 'accountPostalCode', 'postal-code'],
  ['locality', 'accountLocality', 'address-level2'],
  ['region', 'accountRegion', 'address-level1'],
  ['country', 'accountCountry', 'country-name'],
]

interface Entered {
  values: ReadonlyMap<string, string>
  error: AccountError
}

/** What applications may learn of the person. */
export const profile: AccountPage<Entered> = {
  path: '/account/profile',
  title: 'accountProfile',
  group: 'you',
  isShown: ({ settings }) => [settings.name, settings.avatar, settings.profile].some((control) => control !== 'Off'),

  async show({ operations, person, settings, shell }, entered) {
    const { name, avatar, profile: stored = {} } = await operations.profile.get(person)
    const shownOf = (field: string, value: string | null | undefined) => entered?.values.get(field) ?? value ?? ''
    const isEditable = settings.profile === 'Edit'
    const fieldsOf = <Name extends string>(
      rows: readonly Row<Name>[],
      values: Partial<Record<Name, string>>,
    ): ProfileField[] =>
      settings.profile === 'Off'
        ? []
        : rows.map(([field, label, autocomplete, hint]) => ({
            ...{ name: field, label, autocomplete, hint, isEditable },
            value: shownOf(field, values[field]),
          }))
    const first: ProfileField[] = [
      {
        ...{ name: 'name', label: 'accountName', autocomplete: 'name' },
        value: shownOf('name', name),
        isEditable: settings.name === 'Edit',
      },
      {
        ...{ name: 'avatar', label: 'accountAvatar', hint: 'accountAvatarHint', autocomplete: 'photo' },
        value: shownOf('avatar', avatar),
        isEditable: settings.avatar === 'Edit',
      },
    ]
    const shown = first.filter((field) => settings[field.name as 'name' | 'avatar'] !== 'Off')
    return profilePage(shell, {
      picture: avatar ?? undefined,
      groups: [
        { title: undefined, fields: [...shown, ...fieldsOf(plainRows, stored)] },
        { title: 'accountAddress', fields: fieldsOf(addressRows, stored.address ?? {}) },
      ],
      error: entered?.error,
    })
  },

  choices: {
    async save({ operations, person, settings, form, context, done, again }) {
      const values = new Map([...form.keys()].map((field) => [field, (onlyValue(form, field) ?? '').trim()]))
      const refuse = (message: PlainMessage, field: string) => again({ values, error: { message, field } })
      const orNull = (field: 'name' | 'avatar') => (values.get(field) === '' ? null : values.get(field))
      const basics = {
        ...(settings.name === 'Edit' && values.has('name') && { name: orNull('name') }),
        ...(settings.avatar === 'Edit' && values.has('avatar') && { avatar: orNull('avatar') }),
      }
      const read = userPatch.safeParse(basics)
      if (!read.success) {
        const isName = read.error.issues[0]?.path[0] === 'name'
        return isName ? refuse('accountTooLong', 'name') : refuse('accountAvatarInvalid', 'avatar')
      }
      const { profile: before = {} } = await operations.profile.get(person)
      const changed = changesOf(before, values)
      if (!userProfile.safeParse(changed).success) return refuse('accountTooLong', 'givenName')
      if (Object.keys(basics).length > 0) {
        const { name, avatar } = read.data
        const error = await errorOf(operations.profile.update(context('updateMyAccount'), { name, avatar }))
        if (error) return again({ values, error })
      }
      if (settings.profile === 'Edit' && Object.keys(changed).length > 0) {
        await operations.profile.updateProfile(context('updateMyProfile'), changed)
      }
      done('accountSaved')
    },
  },

  fact: async ({ operations, person }) => {
    const { name } = await operations.profile.get(person)
    return name ? { text: name } : undefined
  },
}

/** Members that are different; an address is replaced as a whole, and keeps what is not on the page. */
const changesOf = (before: UserProfile, values: ReadonlyMap<string, string>): UserProfile => {
  const differs = (field: string, old: string | undefined) => values.has(field) && values.get(field) !== (old ?? '')
  const plain = plainRows
    .filter(([field]) => differs(field, before[field]))
    .map(([field]) => [field, values.get(field) ?? ''])
  const address = addressRows
    .filter(([field]) => differs(field, before.address?.[field]))
    .map(([field]) => [field, values.get(field) ?? ''])
  return {
    ...Object.fromEntries(plain),
    ...(address.length > 0 && { address: { ...before.address, ...Object.fromEntries(address) } }),
  }
}
