import type { Fields, Params } from './form.ts'
import { textOf } from './form.ts'

/** One call of the API: its path, the parameters that it takes, and what it does. */

export type Context = { params: Params; id: string; hostUrl: string }
export type Call = {
  method: 'GET' | 'POST' | 'DELETE'
  path: RegExp
  fields: Fields
  run: (context: Context) => object
}

export const numberOf = (params: Params, name: string): number | undefined => {
  const text = textOf(params, name)
  return text === undefined ? undefined : Number(text)
}
