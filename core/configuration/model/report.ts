/** Keys from the cluster downwards. */
export type Path = readonly (string | number)[];

/** `warning`: allowed, but a reviewer should look twice. */
export type Report = (severity: 'error' | 'warning', path: Path, message: string) => void;
