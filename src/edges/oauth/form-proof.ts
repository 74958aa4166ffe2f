import { createHash, timingSafeEqual } from 'node:crypto'

/**
 * A form that acts carries the proof that a page has shown it to the session of this browser. The proof is made of the
 * name that the session has here, which no page, cookie or token says: a cookie that a script has set makes none.
 */

export const isSame = (one: string, other: string): boolean => {
  const [a, b] = [one, other].map((text) => createHash('sha256').update(text).digest()) as [Buffer, Buffer]
  return timingSafeEqual(a, b)
}

type NamedSession = { uid: string }
const proofOf = ({ uid }: NamedSession): string => createHash('sha256').update(`form ${uid}`).digest('hex')

/** The page with the proof in each of its forms. */
export const withProof = (html: string, session: NamedSession): string =>
  html.replace(
    /<form method="post"[^>]*>/g,
    (form) => `${form}<input type="hidden" name="csrf" value="${proofOf(session)}">`,
  )
export const isProven = ({ csrf = '' }: Record<string, string>, session: NamedSession | undefined): boolean =>
  session !== undefined && isSame(csrf, proofOf(session))
