/** A person reads the sentence; the makers of the app read the code and the text of the protocol. */
const sentences: Readonly<Record<string, string>> = {
  invalid_client:
    'This gateway does not know the app that sent you here. Its registration may have ended because nobody used it: go back to the app, remove the connection there, and connect it again.',
  invalid_redirect_uri:
    'The app wants you to return to an address that it has not registered here, so you are not sent there.',
  invalid_target: 'The app asks for access to another server than this gateway.',
  invalid_request:
    'The app asks for the sign-in in a form that this gateway does not take. Only its makers can change that.',
  invalid_scope: 'The app asks for a permission that this gateway does not know.',
  unsupported_response_type:
    'The app asks for a kind of sign-in that this gateway does not offer. Only its makers can change that.',
  access_denied: 'The app was not connected.',
  server_error: 'Something went wrong on our side. Try again in a moment.',
  temporarily_unavailable: 'Too much is asked of this gateway at this moment. Try again in a moment.',
}
const otherwise = 'The app and this gateway do not understand each other.'

type ProtocolError = { error: string; error_description?: string | undefined }
export const sentenceOf = ({ error }: ProtocolError): string => sentences[error] ?? otherwise

/** The makers of the app read this line. */
export const detailOf = ({ error, error_description: text }: ProtocolError): string =>
  text === undefined || text === error ? error : `${error}, ${text}`
