/**
 * What messages say. Every other language has the same keys with the same names in braces (`translation.ts`). Text
 * only: in the HTML part it is escaped like everything else.
 */
export const en = {
  SignInSubject: 'Your code to sign in',
  SignIn: 'Your code to sign in is {code}.',
  RegisterSubject: 'Your code to create an account',
  Register: 'Your code to create an account is {code}.',
  ForgotPasswordSubject: 'Your code to set a new password',
  ForgotPassword: 'Your code to set a new password is {code}.',
  BindNewIdentifierSubject: 'Your code to confirm this address',
  BindNewIdentifier: 'Your code to add this address or number to your account is {code}.',
  MfaVerificationSubject: 'Your second code to sign in',
  MfaVerification: 'Your code for the second step of signing in is {code}.',
  BindMfaSubject: 'Your code to set up a second step',
  BindMfa: 'Your code to set up a second step for signing in is {code}.',
  UserPermissionValidationSubject: 'Your code to confirm that it is you',
  UserPermissionValidation: 'Your code to confirm that it is you is {code}.',
  GenericSubject: 'Your code',
  Generic: 'Your code is {code}.',
  codeLife: 'It is valid for {minutes} minutes. Do not give it to anybody.',
  ignoreCode: 'If you did not ask for it, ignore this message.',

  OrganizationInvitationSubject: 'You are invited to {organization}',
  OrganizationInvitation: 'You are invited to join {organization}. To accept, open this link: {link}',
  AlreadyRegisteredSubject: 'You already have an account',
  AlreadyRegistered:
    'Somebody wanted to create an account with this address or number. There is one already: sign in, or set a new password if you have forgotten yours. If it was not you, there is nothing to do.',

  PasswordChangedSubject: 'Your password was changed',
  PasswordChanged: 'The password of your account was changed.',
  FactorAddedSubject: 'A way to sign in was added',
  FactorAdded: 'A way to sign in was added to your account: {factor}.',
  FactorRemovedSubject: 'A way to sign in was removed',
  FactorRemoved: 'A way to sign in was removed from your account: {factor}.',
  NewDeviceSubject: 'New sign-in to your account',
  NewDevice: 'Somebody signed in to your account on a device that was not used before: {device}.',
  BackupCodeUsedSubject: 'A backup code was used',
  BackupCodeUsed: 'A backup code was used to sign in to your account. You have {left} left.',
  AddressChangedSubject: 'The address of your account was changed',
  AddressChanged: 'Your account no longer uses this address or number. It was replaced by {address}.',
  ImpersonationStartedSubject: 'Somebody acts in your name',
  ImpersonationStarted: '{actor} has begun to act in your name. The reason given: {reason}',
  ImpersonationEndedSubject: 'Nobody acts in your name any more',
  ImpersonationEnded: '{actor} has ceased to act in your name.',
  noticeHelp: 'If you did not expect this, sign in at {link} and change your password.',
} as const
