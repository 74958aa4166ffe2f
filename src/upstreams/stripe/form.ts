/** Writes parameters in Stripe's form: `items[0][price]=price_1`. An absent value is left out. */

export type FormValue =
  | string
  | number
  | boolean
  | undefined
  | readonly FormValue[]
  | { readonly [name: string]: FormValue }
export type FormFields = { readonly [name: string]: FormValue }

function pairsOf(name: string, value: FormValue): [string, string][] {
  if (value === undefined) return []
  if (typeof value !== 'object') return [[name, String(value)]]
  return Object.entries(value).flatMap(([part, below]) =>
    pairsOf(name === '' ? part : `${name}[${part}]`, below as FormValue),
  )
}

export const formText = (fields: FormFields): string => new URLSearchParams(pairsOf('', fields)).toString()
