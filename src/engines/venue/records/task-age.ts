/** A task id begins with its creation time, so the primary key bounds the search. */
export const taskAgeMaxMs = 10 * 60_000

/** The smallest id of a task created at that time. */
export function minTaskId(at: Date): string {
  const hex = at.getTime().toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}
