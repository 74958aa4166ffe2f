import { alternatives, nearest } from '#kernel/contract/nearest-names.ts'
import { type DeclaredInput, namesIn } from './input-location.ts'
import type { UnknownField } from './validation-issues.ts'

const namesShownMax = 24

/** Reports a field that is not declared at its location, with the most similar declared one. */
export function unknownFields({
  params,
  query,
  body,
  isKeyed,
}: DeclaredInput & { isKeyed: boolean }): UnknownField {
  const names = {
    path: namesIn(params),
    query: namesIn(query),
    body: new Set([...namesIn(body), ...(isKeyed ? ['idempotency_key'] : [])]),
  }
  return (name, declared, { isTop }) => {
    const msg = 'Extra inputs are not permitted'
    const elsewhere = isTop && Object.entries(names).find(([, own]) => own.has(name))
    if (elsewhere) return `${msg} here: send \`${name}\` in the ${elsewhere[0]}`
    const meant = nearest(name, declared)
    if (meant.length > 0) return `${msg}; did you mean ${alternatives(meant.map(quoted))}?`
    if (declared.length === 0) return `${msg}; there are no fields here`
    return declared.length > namesShownMax
      ? `${msg}; /openapi.json lists the fields`
      : `${msg}; the fields are ${declared.map(quoted).join(', ')}`
  }
}

const quoted = (name: string): string => `\`${name}\``
