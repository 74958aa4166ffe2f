import { algorithms, type RelyingParty } from './passkey-verification.ts'

export type RequestOptions = Readonly<Record<string, unknown>>
export type CreationOptions = Readonly<Record<string, unknown>>

/** The browser's time limit for a passkey equals the time for which a challenge is valid. */
const timeoutMs = 300_000

export const requestOptions = ({
  party,
  challenge,
}: {
  party: RelyingParty
  challenge: string
}): RequestOptions => ({
  challenge,
  rpId: party.id,
  timeout: timeoutMs,
  userVerification: 'required',
  // No account is named, so the answer is the same for everybody.
  allowCredentials: [],
})

type Creation = {
  party: RelyingParty
  challenge: string
  handle: string
  email: string
  /** Credentials that the account already has; an authenticator that holds one of them makes no second one. */
  excluded: readonly string[]
}
export const creationOptions = ({
  party,
  challenge,
  handle,
  email,
  excluded,
}: Creation): CreationOptions => ({
  challenge,
  rp: { id: party.id, name: 'Portico' },
  user: { id: handle, name: email, displayName: email },
  pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key', alg })),
  timeout: timeoutMs,
  attestation: 'none',
  excludeCredentials: excluded.map((id) => ({ type: 'public-key', id })),
  authenticatorSelection: {
    residentKey: 'required',
    requireResidentKey: true,
    userVerification: 'required',
  },
})
