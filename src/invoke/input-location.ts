import { Fault, type InputLocation } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'

/**
 * Returns the part of a request that carries a field. An undeclared field counts as part of the body, or of the query
 * if the operation has no body.
 */
export type LocationOf = (field: string) => Exclude<InputLocation, 'header'>
export type DeclaredInput = { params?: unknown; query?: unknown; body?: unknown }

export function inputLocations({ params, query, body }: DeclaredInput): LocationOf {
  const inPath = namesIn(params)
  const inQuery = namesIn(query)
  const inBody = namesIn(body)
  const undeclared = body ? 'body' : 'query'
  return (field) => {
    if (inPath.has(field)) return 'path'
    if (inBody.has(field)) return 'body'
    return inQuery.has(field) ? 'query' : undeclared
  }
}

/** Throws if two locations declare one name: the input of an operation, flat or not, holds each name once. */
export function assertDistinctNames(declared: Record<string, ReadonlySet<string>>, label: string): void {
  const owners = new Map<string, string>()
  for (const [location, names] of Object.entries(declared)) {
    for (const name of names) {
      const owner = owners.get(name)
      if (owner !== undefined)
        throw new Error(`${label}: \`${name}\` is declared in the ${owner} and in the ${location}`)
      owners.set(name, location)
    }
  }
}

/** Adds the location of each issue that an operation reported by its field alone. */
export function locateIssues(fault: Fault, locationOf: LocationOf): Fault {
  if (fault.issues.every(({ location }) => location !== undefined)) return fault
  const issues = fault.issues.map((issue) => ({ location: locationOf(String(issue.path[0])), ...issue }))
  return new Fault(fault.code, fault.message, { cause: fault, extras: fault.extras, issues })
}

export function namesIn(schema: unknown): Set<string> {
  if (!isRecord(schema)) return new Set()
  const arms = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((list) => (Array.isArray(list) ? list : []))
  const own = isRecord(schema.properties) ? Object.keys(schema.properties) : []
  return new Set([...own, ...arms.flatMap((arm) => [...namesIn(arm)])])
}
