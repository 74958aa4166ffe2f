import { createHash, timingSafeEqual } from 'node:crypto'

/**
 * Every form that changes something contains a CSRF token for the session of the browser that shows the form. The token
 * is derived from the id of the session on the server, which no page, cookie or access token reveals, so a script that
 * sets a cookie cannot make a valid token.
 */

export const isSame = (one: string, other: string): boolean => {
  const [a, b] = [one, other].map((text) => createHash('sha256').update(text).digest()) as [Buffer, Buffer]
  return timingSafeEqual(a, b)
}

type NamedSession = { uid: string }
const proofOf = ({ uid }: NamedSession): string => createHash('sha256').update(`form ${uid}`).digest('hex')

export const withProof = (html: string, session: NamedSession): string =>
  html.replace(
    /<form method="post"[^>]*>/g,
    (form) => `${form}<input type="hidden" name="csrf" value="${proofOf(session)}">`,
  )
export const isProven = ({ csrf = '' }: Record<string, string>, session: NamedSession | undefined): boolean =>
  session !== undefined && isSame(csrf, proofOf(session))
