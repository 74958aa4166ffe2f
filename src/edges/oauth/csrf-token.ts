import { createHash, timingSafeEqual } from 'node:crypto'

/**
 * A form that acts contains a proof that a page has shown it to the session of this browser. The proof is derived from
 * the name that the session has on the server, which no page, cookie or token reveals, so a cookie that a script has
 * set cannot produce one.
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
