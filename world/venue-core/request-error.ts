/** Rejects a whole request. */
export class RequestError extends Error {}

export const rejectRequest: (sentence: string) => never = (sentence) => {
  throw new RequestError(sentence)
}
