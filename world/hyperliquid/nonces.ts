/** The highest nonces of one signer, ascending. */
export type NonceSet = number[]

export const noncesMax = 100
const dayMs = 86_400_000

/** Takes the nonce, or returns the error. A nonce is used once, whatever the result of its action. */
export const useNonce = (set: NonceSet, nonce: number, nowMs: number): string | undefined => {
  if (nonce <= nowMs - 2 * dayMs || nonce >= nowMs + dayMs)
    return `Invalid nonce: nonce ${nonce} is outside of the allowed time range`
  let at = set.length
  while (at > 0 && (set[at - 1] as number) > nonce) at -= 1
  if (at > 0 && set[at - 1] === nonce) return `Invalid nonce: duplicate nonce ${nonce}`
  if (set.length >= noncesMax && at === 0)
    return `Invalid nonce: nonce ${nonce} is lower than the smallest of the last ${noncesMax}`
  set.splice(at, 0, nonce)
  if (set.length > noncesMax) set.shift()
  return undefined
}
