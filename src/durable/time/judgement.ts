/** Whether a database is the one that a gateway knew, or lost commits that it saw. Pure. */

/** What a gateway knows of the database. */
export type Position = {
  /** Raised by an operator who accepts the database as it is: what was seen before counts no more. */
  generation: number
  /** Heartbeats of this gateway, over all its starts. */
  beat: number
  /** Of the server; null where it shows none. */
  system: string | null
  timeline: number | null
  lsn: bigint | null
}
export type FoundPosition = Position & {
  /** The highest position that any gateway stored on the timeline that this one saw last. */
  storedLsn: bigint | null
  /** Nothing was ever signed with it. */
  isEmpty: boolean
}
export type TimeReason = 'went_back' | 'other_server' | 'no_memory' | 'new_timeline'
export type Judgement =
  | { verdict: 'go' }
  /** The chains and the acknowledged commits decide. */
  | { verdict: 'check'; reason: TimeReason }
  /** An operator decides. */
  | { verdict: 'hold'; reason: TimeReason }

const go: Judgement = { verdict: 'go' }
const wentBack: Judgement = { verdict: 'hold', reason: 'went_back' }
const isLess = (found: bigint | null, seen: bigint | null) => found !== null && seen !== null && found < seen

/** A server that shows no identity, timeline or position is judged by the heartbeats alone. */
export function judgePosition(seen: Position | undefined, found: FoundPosition): Judgement {
  if (!seen) return found.isEmpty ? go : { verdict: 'check', reason: 'no_memory' }
  if (found.generation > seen.generation) return go
  if (found.generation < seen.generation || found.beat < seen.beat) return wentBack
  if (seen.system !== null && found.system !== null && found.system !== seen.system)
    return { verdict: 'hold', reason: 'other_server' }
  const hasTimelines = seen.timeline !== null && found.timeline !== null
  if (!hasTimelines || found.timeline === seen.timeline) return isLess(found.lsn, seen.lsn) ? wentBack : go
  // A node that came back with the timeline of before has none of the commits of the later one.
  if (found.timeline! < seen.timeline! || isLess(found.storedLsn, seen.lsn)) return wentBack
  return { verdict: 'check', reason: 'new_timeline' }
}

/** The highest position of both, after the database was found to be the known one. */
export function rememberPosition(seen: Position | undefined, found: FoundPosition): Position {
  const { isEmpty: _isEmpty, storedLsn, ...position } = found
  const isSameTimeline = seen?.timeline === found.timeline
  const lsn = isSameTimeline && isLess(position.lsn, storedLsn) ? storedLsn : position.lsn
  return { ...position, lsn }
}
