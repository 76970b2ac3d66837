import { translation } from './translation.ts'

export const de = translation({
  errorPrefix: 'Fehler:',
  problemHeading: 'Es gibt ein Problem',

  signIn: 'Anmelden',
  signInTo: 'um mit {application} fortzufahren',
  reauthenticate: 'Bitte bestätigen Sie, dass Sie es sind',
  reasonLogin: '{application} bittet Sie, sich erneut anzumelden.',
  reasonMaxAge:
    'Ihre Anmeldung liegt einige Zeit zurück. Bitte melden Sie sich erneut an, um mit {application} fortzufahren.',
  reasonAcr: '{application} verlangt einen stärkeren Nachweis, dass Sie es sind.',
  identifier: 'E-Mail-Adresse, Telefonnummer oder Benutzername',
  account: 'Konto',
  password: 'Passwort',
  keep: 'Auf diesem Gerät angemeldet bleiben',
  cancel: 'Abbrechen',

  invalidCredentials: 'Diese Angaben passen zu keinem Konto. Prüfen Sie sie und geben Sie Ihr Passwort erneut ein.',
  locked: 'Zu viele Versuche sind fehlgeschlagen. Bitte versuchen Sie es in {duration} erneut.',
  lockedForNow: 'Zu viele Versuche sind fehlgeschlagen. Bitte versuchen Sie es später erneut.',
  identifierMissing: 'Geben Sie Ihre E-Mail-Adresse, Telefonnummer oder Ihren Benutzernamen ein',
  passwordMissing: 'Geben Sie Ihr Passwort ein',
  tooLong: 'Ihre Eingabe ist zu lang. Prüfen Sie sie und versuchen Sie es erneut.',
  tooManyRequests: 'Aus Ihrem Netz kamen zu viele Anfragen. Bitte versuchen Sie es in {duration} erneut.',
  tooManyRequestsForNow: 'Aus Ihrem Netz kamen zu viele Anfragen. Bitte versuchen Sie es in einigen Minuten erneut.',

  chooseAccount: 'Konto auswählen',
  continueAs: 'Weiter als {name}',
  anotherAccount: 'Anderes Konto verwenden',

  consentTitle: 'Zugriff erlauben',
  consentHeading: '{application} bittet um Zugriff auf Ihr Konto',
  signedInAs: 'Angemeldet als',
  notYou: 'Nicht Sie?',
  consentScopes: 'Die Anwendung möchte',
  consentResource: 'Die Anwendung möchte in {resource}',
  consentOrganizations: 'Organisationen, auf die sie zugreifen darf',
  consentOrganizationsHint: 'Wählen Sie eine, mehrere oder keine.',
  consentRedirect: 'Danach geht es weiter zu {host}.',
  consentDuration: 'Die Erlaubnis gilt, bis sie widerrufen oder 180 Tage lang nicht genutzt wird.',
  allow: 'Erlauben',
  deny: 'Nicht erlauben',

  scopeOpenid: 'Sie bei der Anmeldung wiedererkennen',
  scopeProfile: 'Ihr Profil sehen, zum Beispiel Name und Bild',
  scopeEmail: 'Ihre E-Mail-Adresse sehen',
  scopePhone: 'Ihre Telefonnummer sehen',
  scopeAddress: 'Ihre Postanschrift sehen',
  scopeOfflineAccess: 'Diesen Zugriff behalten, auch wenn Sie die Anwendung gerade nicht nutzen',
  scopeRoles: 'Ihre Rollen sehen',
  scopeOrganizations: 'Sehen, zu welchen Organisationen Sie gehören',
  scopeOrganizationRoles: 'Ihre Rollen in Ihren Organisationen sehen',
  scopeCustomData: 'Weitere Daten sehen, die zu Ihrem Konto gespeichert sind',
  scopeIdentities: 'Sehen, welche Konten bei anderen Diensten mit Ihrem verknüpft sind',

  signOutTitle: 'Abmelden',
  signOutQuestion: 'Möchten Sie sich abmelden?',
  signOutAskedBy: '{application} möchte Sie abmelden.',
  signOut: 'Abmelden',
  staySignedIn: 'Angemeldet bleiben',
  everywhere: 'Überall abmelden',
  everywhereHint: 'Auf allen Ihren Geräten und von allen Anwendungen.',
  signedOut: 'Sie haben sich erfolgreich abgemeldet.',
  mayClose: 'Sie können dieses Fenster schließen.',

  finished: 'Sie sind bereits angemeldet',
  finishedText: 'Diese Anmeldung ist abgeschlossen. Hier ist nichts weiter zu tun.',
  continueTo: 'Weiter zu {application}',
  continueOn: 'Weiter',
  startAgain: 'Neu beginnen',
  backTo: 'Zurück zu {application}',
  backToApplication: 'Zurück zur Anwendung',

  reference: 'Referenz',
  received: 'Was wir erhalten haben',

  invalidRequest: 'Dieser Link funktioniert nicht',
  invalidRequestText:
    'Die Anfrage ist unvollständig oder falsch. Bitte kehren Sie zur Anwendung zurück und versuchen Sie es erneut.',
  invalidClient: 'Wir kennen diese Anwendung nicht',
  invalidClientText:
    'Die Anwendung, die Sie hierher geschickt hat, ist nicht registriert. Bitte wenden Sie sich an deren Betreiber.',
  unauthorizedClient: 'Diese Anwendung darf Sie nicht anmelden',
  unauthorizedClientText:
    'Sie ist nicht für die Anmeldung bei uns eingerichtet. Bitte wenden Sie sich an deren Betreiber.',
  invalidRedirectUri: 'Diese Rücksprungadresse ist nicht registriert',
  invalidRedirectUriText:
    'Zum Schutz Ihres Kontos leiten wir Sie nicht dorthin weiter. Der Betreiber der Anwendung muss die Adresse registrieren.',
  invalidLogout: 'Wir konnten Sie nicht abmelden',
  invalidLogoutText: 'Die Anfrage gehört nicht zu dieser Sitzung. Sie sind weiterhin angemeldet.',
  invalidLogoutUriText: 'Sie sind weiterhin angemeldet. Der Betreiber der Anwendung muss die Adresse registrieren.',
  expired: 'Diese Seite ist abgelaufen',
  expiredText: 'Sie war zu lange geöffnet. Es ist nichts verloren: Bitte beginnen Sie neu.',
  otherBrowser: 'Diese Anmeldung wurde in einem anderen Browser begonnen',
  otherBrowserText:
    'Bitte machen Sie dort weiter, wo Sie begonnen haben, oder beginnen Sie hier neu. Cookies müssen für diese Seite erlaubt sein.',
  invalidForm: 'Dieses Formular konnte nicht angenommen werden',
  invalidFormText:
    'Es kam nicht von unserer Seite, oder die Seite war zu alt. Bitte gehen Sie zurück und versuchen Sie es erneut.',
  noSignIn: 'Hier ist nichts zu tun',
  noSignInText:
    'Öffnen Sie die Anwendung, die Sie nutzen möchten. Sie führt Sie hierher, wenn Sie sich anmelden müssen.',
  notFound: 'Diese Seite gibt es nicht',
  notFoundText: 'Prüfen Sie die Adresse oder öffnen Sie die Anwendung, die Sie nutzen möchten.',
  tooManySignIns: 'Bitte warten Sie einen Moment',
  applicationUnavailable: 'Diese Anwendung ist nicht verfügbar',
  applicationUnavailableText:
    'Sie wurde während Ihrer Anmeldung geändert oder entfernt. Bitte wenden Sie sich an deren Betreiber.',
  accessDenied: 'Sie haben keinen Zugang',
  accessDeniedText: 'Ihr Konto darf diese Anwendung nicht nutzen. Bitte wenden Sie sich an deren Betreiber.',
  userSuspended: 'Ihr Konto ist gesperrt',
  userSuspendedText: 'Sie können sich derzeit nicht anmelden. Bitte wenden Sie sich an den Betreiber dieses Dienstes.',
  serverError: 'Bei uns ist etwas schiefgegangen',
  serverErrorText: 'Bitte versuchen Sie es erneut. Falls es wieder geschieht, nennen Sie uns die Referenz unten.',
  unavailable: 'Wir sind gerade nicht erreichbar',
  unavailableText: 'Bitte versuchen Sie es in einigen Sekunden erneut.',

  formPost: 'Einen Moment bitte',
  formPostText: 'Ihr Browser macht nicht von selbst weiter. Bitte betätigen Sie die Schaltfläche.',

  captchaWorking: 'Ihr Browser wird geprüft …',
  captchaWithoutScript:
    'Ihr Browser führt keine Skripte aus und kann deshalb nicht geprüft werden. Bitte melden Sie sich mit einem Code an, den wir Ihnen per E-Mail senden.',
  captchaFailed: 'Ihr Browser konnte nicht geprüft werden. Bitte versuchen Sie es noch einmal.',
})
