/** The pages of signing in: pure functions from what is to be said to a page, in five languages, without a script. */
export type { PageAccount } from './account.ts'
export { type AddressError, type AddressPage, type AddressPurpose, addressPage } from './address.ts'
export type { AddressName, IdentifierName } from './address-words.ts'
export { type AssetEndpoint, createAssetEndpoint } from './asset-endpoint.ts'
export { type Asset, findAsset, sendAsset } from './assets.ts'
export { type Branding, type Brandings, brandingFrom, createBrandings } from './branding.ts'
export { type CaptchaField, captchaField } from './captcha.ts'
export { type CaptchaError, type CaptchaPage, captchaPage } from './captcha-step.ts'
export type { PageClient } from './client.ts'
export { type CodeError, type CodePage, codePage } from './code.ts'
export { type AskingDevice, type ConsentPage, consentPage, type PageScope } from './consent.ts'
export {
  type DetailsPage,
  type DetailsPurpose,
  detailsPage,
  type PasswordError,
  type UsernameError,
} from './details.ts'
export {
  type DeviceCodeError,
  type DeviceDonePage,
  type DevicePage,
  deviceDonePage,
  devicePage,
} from './device.ts'
export { type Block, type BlockedPage, blockedPage, blockNames, type NoAccountPage, noAccountPage } from './ending.ts'
export { type EnrolError, type EnrolPage, enrolPage, type NewFactor, type QrPicture } from './enrol.ts'
export { type ErrorPage, errorPage, type PageProblem } from './error.ts'
export type { PageFactor } from './factors.ts'
export { type FinishedPage, finishedPage } from './finished.ts'
export { type FormPostPage, formPostPage } from './form-post.ts'
export { createLocaleOf, type LanguageInfo, type Locale, type LocaleOf, locales, pickLocale } from './locale.ts'
export { type LogoutPage, logoutPage, type SignedOutPage, signedOutPage } from './logout.ts'
export { mailLookFrom } from './mail-look.ts'
export type { Page } from './page.ts'
export { type PasskeyForm, passkeyForm, passkeyScriptSource } from './passkey-form.ts'
export { type PasskeyOfferPage, passkeyOfferPage } from './passkey-offer.ts'
export type { PasswordIssue } from './password-words.ts'
export type { PageProvider, ProviderNotice } from './providers.ts'
export { accountName } from './say.ts'
export {
  type AskedFactor,
  type FactorError,
  type SecondFactorPage,
  secondFactorPage,
} from './second-factor.ts'
export { type SelectAccountPage, selectAccountPage } from './select-account.ts'
export { type SendPageOptions, sendPage } from './send-page.ts'
export { type SendError, type SignInError, type SignInPage, signInPage } from './sign-in.ts'
export { type TermsPage, termsPage } from './terms.ts'
