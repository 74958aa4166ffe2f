/** A request that both doors get, and the answer that the state of both users allows. */
import type { SchemeName } from './door-schemes.ts'
import type { Question } from './twins.ts'

type Json = Record<string, unknown>
export type Step = Question & {
  /** Asked until the result is so. */
  until?: (result: Json) => boolean
  /** What later steps refer to. */
  keep?: (result: Json, known: Json) => void
  /** The one answer that this state allows, where it is no result; it may be that of one scheme. */
  fault?: string | Partial<Record<SchemeName, string>>
  /** The other scheme does not take this step. */
  only?: SchemeName
}

/** The answer that a user of this scheme gets; undefined: a result. */
export const faultOf = ({ fault }: Pick<Step, 'fault'>, scheme: SchemeName): string | undefined =>
  typeof fault === 'string' ? fault : fault?.[scheme]
